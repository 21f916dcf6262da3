"""How the landing page of ``serve`` looks."""

__all__ = ["STYLE"]

# Where there is no room for the columns, each row is a card with a line for each of them.
_CARDS = """\
@media (max-width: {width}) {{
  table.{name}, .{name} tbody, .{name} tr, .{name} td {{ display: block }}
  .{name} tr:first-child {{ display: none }}
  .{name} tr {{ display: grid; grid-template-columns: repeat(auto-fill, minmax({column}, 1fr));
    gap: .3rem 1.5rem; padding: .8rem 0; border-bottom: 1px solid #8884 }}
  .{name} td {{ border: 0; padding: 0 }} .{name} td.n {{ text-align: left }}
  .{name} td:empty {{ display: none }}
  .{name} td::before {{ content: attr(data-name); display: block; opacity: .7;
    font-size: .85rem }}
}}
"""

STYLE = f"""\
:root {{ color-scheme: light dark; }}
body {{ font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 90rem;
  padding: 0 1rem }}
h1 {{ font-size: 1.4rem; margin-bottom: 0 }} h2 {{ font-size: 1.1rem; margin-top: 2rem }}
h3 {{ font-size: 1rem; margin: 1.2rem 0 0 }}
table {{ border-collapse: collapse; width: 100% }}
caption {{ text-align: left; opacity: .7; padding: 0 0 .3rem }}
th, td {{ text-align: left; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid #8884;
  vertical-align: top }}
th {{ vertical-align: bottom; line-height: 1.25 }} td, dd {{ overflow-wrap: anywhere }}
td.n, th.n {{ text-align: right; font-variant-numeric: tabular-nums; overflow-wrap: normal }}
td.n {{ white-space: nowrap }}
.bad {{ color: #c22 }} .quiet {{ opacity: .7 }}
@media (prefers-color-scheme: dark) {{ .bad {{ color: #f77 }} }}
dl.agent {{ display: grid; grid-template-columns: repeat(auto-fill, minmax(20rem, 1fr));
  gap: .4rem 2rem; margin: 0 }}
dt {{ opacity: .7; font-size: .85rem }} dd {{ margin: 0 }}
table.pairs {{ margin-bottom: 1rem }}
.pairs th, .pairs td {{ padding-right: 1.5rem }}
.pairs .t {{ width: 7rem }} .pairs .k {{ width: 12rem }}
{_CARDS.format(name="targets", width="80rem", column="10rem")}\
{_CARDS.format(name="pairs", width="45rem", column="7rem")}\
@media (max-width: 45rem) {{
  .pairs caption {{ display: block }} .pairs .s {{ grid-column: 1 / -1 }}
}}
"""
