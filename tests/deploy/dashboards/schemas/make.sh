#!/bin/sh
# Makes the schemas in this folder again: JSON Schema from the TypeScript of Grafana's own types.
# Needs Node. Texts that explain the types are left out.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

npm install --ignore-scripts --no-audit --no-fund \
    @grafana/schema@13.2.3 ts-json-schema-generator@2.4.0

# The generator stumbles over a type that is called like one of those below it, hence the prefix.
cat >types.ts <<'END'
import * as dashboard from './node_modules/@grafana/schema/dist/types/raw/dashboard/x/types.gen';
import * as heatmap from './node_modules/@grafana/schema/dist/types/raw/composable/heatmap/panelcfg/x/types.gen';
import * as stat from './node_modules/@grafana/schema/dist/types/raw/composable/stat/panelcfg/x/types.gen';
import * as table from './node_modules/@grafana/schema/dist/types/raw/composable/table/panelcfg/x/types.gen';
import * as timeseries from './node_modules/@grafana/schema/dist/types/raw/composable/timeseries/panelcfg/x/types.gen';
export type GilscopeDashboard = dashboard.Dashboard;
export type GilscopePanel = dashboard.Panel;
export type GilscopeRowPanel = dashboard.RowPanel;
export type GilscopeHeatmapOptions = Partial<heatmap.Options>;
export type GilscopeHeatmapFieldConfig = Partial<heatmap.FieldConfig>;
export type GilscopeStatOptions = Partial<stat.Options>;
export type GilscopeTableOptions = Partial<table.Options>;
export type GilscopeTableFieldConfig = Partial<table.FieldConfig>;
export type GilscopeTimeseriesOptions = Partial<timeseries.Options>;
export type GilscopeTimeseriesFieldConfig = Partial<timeseries.FieldConfig>;
END
cat >tsconfig.json <<'END'
{
  "compilerOptions": {
    "module": "nodenext", "moduleResolution": "nodenext", "skipLibCheck": true, "strict": true
  },
  "files": ["types.ts"]
}
END
cat >make.mjs <<'END'
import {createGenerator} from 'ts-json-schema-generator';
import {readFileSync, writeFileSync} from 'node:fs';

const isText = (key, value) => key === 'description' && typeof value === 'string';
const types = readFileSync('types.ts', 'utf8').matchAll(/export type Gilscope(\w+)/g);
for (const [, name] of types) {
    const type = `Gilscope${name}`;
    const settings = {path: 'types.ts', tsconfig: 'tsconfig.json', skipTypeCheck: true};
    // One generator for each: a type that two of them share would be defined twice.
    const made = createGenerator({...settings, type, additionalProperties: false});
    const text = JSON.stringify(
        made.createSchema(type), (key, value) => isText(key, value) ? undefined : value, 1);
    writeFileSync(`${process.argv[2]}/${name}.json`, `${text}\n`);
}
END
node make.mjs "$here"
