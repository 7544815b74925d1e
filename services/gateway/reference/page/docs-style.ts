/** The page's CSS: for dark mode and print, for a phone and a wide screen. */
export const docsStyle = `
:root {
  color-scheme: light dark;
  --ground: #fcfcfa; --panel: #f4f3ef; --line: #e3e1da; --ink: #1d1f21; --soft: #66686b;
  --accent: #0b6e5f; --get: #1d62b0; --post: #0b6e5f; --key: #7a3e9d; --string: #1f6f43; --word: #a0430a;
  --mono: ui-monospace, "SF Mono", "Cascadia Code", "JetBrains Mono", Menlo, Consolas, monospace;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #131517; --panel: #1b1e21; --line: #2d3136; --ink: #e4e5e3; --soft: #989ca1;
    --accent: #5cc7b2; --get: #7db4f0; --post: #5cc7b2; --key: #cfa3ea; --string: #8ecf9f; --word: #efab7d;
  }
}
*, *::before, *::after { box-sizing: border-box; }
html { scroll-padding-top: 1.5rem; -webkit-text-size-adjust: 100%; }
body {
  margin: 0; background: var(--ground); color: var(--ink);
  font: 1rem/1.6 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif;
  display: grid; grid-template-columns: 17rem minmax(0, 1fr);
}
a { color: var(--accent); text-decoration: none; }
a:hover { text-decoration: underline; }
:target { background: color-mix(in srgb, var(--accent) 12%, transparent); }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }

nav { border-right: 1px solid var(--line); background: var(--panel); font-size: .875rem; }
nav > details { position: sticky; top: 0; max-height: 100vh; overflow-y: auto; padding: 2rem 1.25rem; }
nav summary { font-weight: 650; font-size: 1rem; letter-spacing: -.01em; list-style: none; cursor: default; }
nav summary::-webkit-details-marker { display: none; }
nav ul { list-style: none; margin: .75rem 0 0; padding: 0; }
nav ul ul { margin: 0 0 .5rem; padding-left: .75rem; }
nav li a { display: block; padding: .15rem 0; color: var(--ink); overflow-wrap: anywhere; }
nav ul ul a { color: var(--soft); font-size: .8125rem; }

main { max-width: 56rem; padding: 3rem clamp(1rem, 4vw, 4rem) 6rem; min-width: 0; }
h1, h2, h3, h4 { line-height: 1.25; letter-spacing: -.015em; text-wrap: balance; }
h1 { font-size: 2.25rem; margin: 0 0 1rem; letter-spacing: -.03em; }
h2 { font-size: 1.625rem; margin: 4rem 0 1rem; padding-top: 1.5rem; border-top: 1px solid var(--line); }
h3 { font-size: 1.1875rem; margin: 2.5rem 0 .5rem; }
h4 { font-size: .9375rem; margin: 1.75rem 0 .5rem; }
.lead { font-size: 1.125rem; color: var(--soft); max-width: 44rem; }
p, ul, ol, dl { max-width: 44rem; margin: .75rem 0; }
.steps { padding-left: 1.25rem; max-width: none; }
.endpoint + .endpoint { margin-top: 3.5rem; }
.route { font-size: .9375rem; }
.route code { background: none; padding: 0; font-weight: 600; }
b.get, b.post { font: 650 .6875rem/1 var(--mono); letter-spacing: .04em; color: var(--get); }
b.post { color: var(--post); }
.quiet, h4 .quiet { color: var(--soft); font-weight: 400; }
em { font-style: normal; font-size: .75rem; color: var(--word); }
em.quiet { color: var(--soft); }
small { color: var(--soft); font-size: .8125rem; }

code { font-family: var(--mono); font-size: .875em; background: var(--panel); padding: .1em .3em; border-radius: .25rem; }
figure { margin: .75rem 0 1.25rem; border: 1px solid var(--line); border-radius: .5rem; overflow: hidden; background: var(--panel); }
figcaption {
  display: flex; align-items: center; justify-content: space-between; min-height: 2rem;
  padding: 0 .5rem 0 1rem; font-size: .75rem; color: var(--soft); border-bottom: 1px solid var(--line);
}
figure button {
  font: inherit; color: var(--soft); background: none; border: 0; padding: .25rem .5rem; border-radius: .25rem; cursor: pointer;
}
figure button:hover { color: var(--ink); background: var(--line); }
pre { margin: 0; padding: .875rem 1rem; overflow-x: auto; line-height: 1.5; tab-size: 2; }
pre code { background: none; padding: 0; font-size: .8125rem; }
.k { color: var(--key); } .s { color: var(--string); } .w { color: var(--word); } .c { color: var(--soft); }

table { width: 100%; border-collapse: collapse; margin: .75rem 0 1rem; font-size: .875rem; line-height: 1.5; }
th { text-align: left; font-weight: 500; font-size: .75rem; color: var(--soft); }
th, td { padding: .5rem 1rem .5rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
th:last-child, td:last-child { padding-right: 0; }
td code { background: none; padding: 0; overflow-wrap: anywhere; }
.fields td:nth-child(1) { width: 30%; } .fields td:nth-child(2) { width: 27%; }
.errors td:nth-child(1) { width: 4rem; font-variant-numeric: tabular-nums; } .errors td:nth-child(2) { width: 36%; }
.errors td:nth-child(4) { width: 5.5rem; }
.headers td:nth-child(1) { width: 36%; } .headers td:nth-child(3) { white-space: nowrap; } .limits td:nth-child(2) { white-space: nowrap; font-variant-numeric: tabular-nums; }

details > summary { cursor: pointer; font-size: .875rem; padding: .25rem 0; color: var(--soft); }
details > summary:hover { color: var(--ink); }
dl { display: grid; grid-template-columns: auto 1fr; gap: .25rem 1rem; font-size: .875rem; }
dd { margin: 0; }
.codes dt { font-variant-numeric: tabular-nums; color: var(--soft); }
.codes code { background: none; padding: 0; margin-right: .5rem; }
.refused { font-size: .875rem; padding-left: 1.25rem; }

@media (max-width: 60rem) {
  body { display: block; }
  nav { position: sticky; top: 0; z-index: 1; border-right: 0; border-bottom: 1px solid var(--line); }
  nav > details { position: static; max-height: 80vh; padding: .625rem 1rem; }
  nav summary { cursor: pointer; padding: 0; color: var(--ink); }
  nav summary::after { content: "Contents"; float: right; font-weight: 400; font-size: .875rem; color: var(--soft); }
  html { scroll-padding-top: 4rem; }
  main { padding-top: 1.5rem; }
  h1 { font-size: 1.75rem; }
}
@media (max-width: 40rem) {
  thead { display: none; }
  table, tbody, tr, td { display: block; width: auto !important; }
  tr { padding: .625rem 0; border-bottom: 1px solid var(--line); }
  td { border: 0; padding: .1rem 0; }
}
@media print { nav, figure button { display: none; } body { display: block; } }
`;
