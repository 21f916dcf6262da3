// Draws a dashboard with the components that Grafana's own panels consist of, from window.shown:
// the answers to its queries, as make.py has written them. There are none for heatmaps.

// By require: some of what Grafana's modules import is not what a bundle makes of it.
const {
    createDataFrame, createTheme, dateTime, FieldType, getDisplayProcessor, ThemeContext,
} = require('@grafana/data');
const {BigValue, GlobalStyles, PanelChrome, Table, TimeSeries} = require('@grafana/ui');
const {createRoot} = require('react-dom/client');

const {from, to, panels, width} = window.shown;
const theme = createTheme({colors: {mode: 'dark'}});
const column = width / 24;
const line = 38;
const gap = 8;
const COLORS = ['green', 'yellow', 'blue', 'orange', 'red', 'purple'];

function config(settings) {
    const {steps = [{color: 'green', value: null}]} = settings.thresholds ?? {};
    const reached = steps.map((step) => ({...step, value: step.value ?? -Infinity}));
    return {...settings, thresholds: {mode: 'absolute', steps: reached}};
}

function field(name, type, values, settings, state = {}) {
    const made = {name, type, values, config: config(settings), state};
    made.display = getDisplayProcessor({field: made, theme});
    return made;
}

function Graph({panel, width, height}) {
    const frames = panel.series.map(({name, times, values}, index) => createDataFrame({
        refId: name,
        fields: [
            field('time', FieldType.time, times, {}),
            field(name, FieldType.number, values, {
                ...panel.settings,
                displayName: name,
                color: {mode: 'fixed', fixedColor: COLORS[index % COLORS.length]},
            }, {seriesIndex: index, displayName: name}),
        ],
    }));
    const timeRange = {from: dateTime(from), to: dateTime(to), raw: {from: '', to: ''}};
    return <TimeSeries frames={frames} timeRange={timeRange} timeZone="utc" width={width}
        height={height} legend={panel.legend} />;
}

function Figure({panel, width, height}) {
    const shown = field(panel.title, FieldType.number, [panel.value], panel.settings);
    const color = {mode: 'thresholds'};
    shown.config = {...shown.config, color};
    shown.display = getDisplayProcessor({field: shown, theme});
    return <BigValue value={shown.display(panel.value)} width={width} height={height}
        theme={theme} colorMode="value" graphMode="none" justifyMode="auto" />;
}

function Rows({panel, width, height}) {
    const fields = panel.columns.map(({title, values, settings}) => field(
        title,
        typeof values[0] === 'number' ? FieldType.number : FieldType.string,
        values,
        {...settings, displayName: title, color: {mode: 'thresholds'}},
    ));
    return <Table data={createDataFrame({fields})} width={width} height={height}
        columnMinWidth={90} />;
}

const KINDS = {stat: Figure, table: Rows, timeseries: Graph};

function Panel({panel}) {
    const {x, y, w, h} = panel.place;
    const style = {position: 'absolute', left: x * column + gap, top: y * line + gap};
    if (panel.type === 'row') {
        return <h4 style={{...style, margin: 0, paddingTop: 6}}>{panel.title}</h4>;
    }
    const Kind = KINDS[panel.type];
    return <div style={style}>
        <PanelChrome title={panel.title} description={panel.description}
            width={w * column - gap} height={h * line - gap}>
            {(width, height) => <Kind panel={panel} width={width} height={height} />}
        </PanelChrome>
    </div>;
}

createRoot(document.getElementById('page')).render(
    <ThemeContext.Provider value={theme}>
        <GlobalStyles />
        {panels.map((panel) => <Panel key={panel.id} panel={panel} />)}
    </ThemeContext.Provider>,
);
