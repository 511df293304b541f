"""The page's CSS."""

from __future__ import annotations

STYLE = """
:root {
  color-scheme: light dark;
  --ground: light-dark(#f3f4f7, #0c0f14);
  --panel: light-dark(#ffffff, #141920);
  --raised: light-dark(#f7f8fa, #1b212a);
  --line: light-dark(#e2e5eb, #262d38);
  --strong-line: light-dark(#c9cfd9, #3a4452);
  --pressed: light-dark(#ffffff, #343d4b);
  --ink: light-dark(#161a22, #e8ebf0);
  --soft: light-dark(#596273, #98a2b3);
  --accent: light-dark(#4049c4, #98a2ff);
  --accent-fill: light-dark(#4f5bd5, #5661dd);
  --accent-tint: light-dark(#e9ebfc, #232849);
  --good: light-dark(#12744a, #57cc99);
  --good-fill: light-dark(#2a9d6c, #3fb27f);
  --warn: light-dark(#925600, #f2b75c);
  --warn-fill: light-dark(#e09a1f, #e2a33c);
  --warn-line: light-dark(#ecc988, #6b5123);
  --warn-tint: light-dark(#fdf3df, #2a2212);
  --bad: light-dark(#b3243b, #ff8095);
  --bad-fill: light-dark(#c9304a, #c23a52);
  --bad-tint: light-dark(#fdecef, #38171e);
  --mono: ui-monospace, "SF Mono", "Cascadia Mono", "DejaVu Sans Mono", Menlo, Consolas, monospace;
  font: 14px/1.45 Inter, ui-sans-serif, system-ui, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif;
  font-variant-numeric: tabular-nums;
}
:root[data-theme=light] { color-scheme: light; }
:root[data-theme=dark] { color-scheme: dark; }
* { box-sizing: border-box; }
[hidden] { display: none !important; }
body { margin: 0; min-height: 100vh; background: var(--ground); color: var(--ink); }
h1, h2, h3, p, ul, dl, dd { margin: 0; padding: 0; }
ul { list-style: none; }
h1 { font-size: 15px; line-height: 1.2; letter-spacing: -.01em; }
h2 { font-size: 14px; letter-spacing: -.005em; }
h3 { font-size: 12px; color: var(--soft); font-weight: 600; }
button, input, select { font: inherit; color: inherit; }
button { cursor: pointer; border: 1px solid var(--strong-line); background: var(--panel); border-radius: 7px;
  padding: 4px 11px; }
button:hover { border-color: var(--accent); color: var(--accent); }
button:disabled { cursor: default; opacity: .5; }
button.main { background: var(--accent-fill); border-color: transparent; color: #fff; font-weight: 600; }
button.main:hover { filter: brightness(1.1); color: #fff; }
button.quiet { border-color: transparent; background: none; color: var(--soft); padding: 3px 7px; }
button.quiet:hover { background: var(--raised); color: var(--ink); }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 1px; }
.scroll:focus-visible, .cards:focus-visible { outline-offset: -2px; }
input:not([type=checkbox]), select { width: 100%; min-width: 0; padding: 4px 8px;
  border: 1px solid var(--strong-line); border-radius: 7px;
  background: var(--panel); }
input::placeholder { color: var(--soft); opacity: 1; }
.name, .mono { unicode-bidi: isolate; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.mono { font: 12px/1.5 var(--mono); }
.grow { flex: 1; }

.top { display: flex; align-items: center; gap: 14px 36px; padding: 12px 20px; background: var(--panel);
  border-bottom: 1px solid var(--line);
  position: sticky; top: 0; z-index: 3; }
.brand { display: flex; align-items: center; gap: 12px; min-width: 0; }
.brand svg { flex: none; fill: var(--accent-fill); }
.brand > div { min-width: 0; }
.address { display: block; max-width: 100%; border: 0; background: none; padding: 0; color: var(--soft);
  font: 12px/1.4 var(--mono);
  overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.rules { display: flex; flex-wrap: wrap; gap: 4px 28px; flex: 1; }
.rules div { min-width: 0; }
.rules dt { font-size: 11px; color: var(--soft); line-height: 1.3; }
.rules dd { font-weight: 550; white-space: nowrap; }
.tools { display: flex; align-items: center; gap: 10px; flex: none; }
.link { display: inline-flex; align-items: center; gap: 8px; padding: 3px 12px 3px 10px; border-radius: 99px;
  background: var(--raised);
  border: 1px solid var(--line); font-weight: 550; white-space: nowrap; }
.link i { width: 8px; height: 8px; border-radius: 50%; background: var(--warn-fill); }
[data-link=live] .link i { background: var(--good-fill); }
[data-link=lost] .link { background: var(--bad-tint); border-color: transparent; color: var(--bad); }
[data-link=lost] .link i { background: var(--bad-fill); animation: pulse 1s infinite alternate; }
.notice { padding: 9px 20px; background: var(--bad-tint); color: var(--bad); border-bottom: 1px solid var(--line);
  font-weight: 550; }
[data-link=lost] main { filter: grayscale(1); }
main { transition: filter .3s; }
@keyframes pulse { to { opacity: .25; } }

main { display: grid; gap: 14px; padding: 14px 20px 20px; grid-template-columns: minmax(0, 1fr) 296px;
  align-items: start;
  grid-template-areas: "accounts rail" "sessions rail" "requests rail"; grid-template-rows: auto auto 1fr; }
.accounts { grid-area: accounts; } .sessions { grid-area: sessions; } .requests { grid-area: requests; }
.rail { grid-area: rail; display: grid; gap: 14px; }
.panel { background: var(--panel); border: 1px solid var(--line); border-radius: 12px; min-width: 0; }
.head { display: flex; align-items: center; flex-wrap: wrap; gap: 6px 10px; padding: 10px 14px; min-height: 48px; }
.count { color: var(--soft); }
.empty { padding: 22px 16px 26px; color: var(--soft); text-align: center; overflow-wrap: anywhere; }
.empty code { font: 12px var(--mono); color: var(--ink); background: var(--raised); padding: 2px 6px;
  border-radius: 5px; }
.switch { display: flex; background: var(--raised); border: 1px solid var(--line); border-radius: 8px; padding: 2px; }
.switch button { border: 0; background: none; padding: 2px 10px; border-radius: 6px; color: var(--soft); }
.switch button[aria-pressed=true] { background: var(--pressed); color: var(--ink); font-weight: 550;
  box-shadow: 0 1px 2px rgb(0 0 0 / .14); }
[type=search] { flex: 0 1 240px; }
.chip { border-color: transparent; background: var(--accent-tint); color: var(--accent); padding: 2px 10px;
  border-radius: 99px; max-width: 260px;
  overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }

/* The box shows whole rows of cards: all rows have the same height, and the box is as high as some of them. Its padding
   leaves room for the outlines of the cards. */
.cards { --card: 110px; --gap: 10px; --row: calc(var(--card) + var(--gap)); --most: 36vh; display: grid;
  grid-template-columns: repeat(auto-fill, minmax(min(258px, 100%), 1fr)); grid-auto-rows: var(--card);
  gap: var(--gap); margin: 0 12px 12px; padding: 2px; overflow: auto; border-radius: 10px;
  max-height: calc(max(var(--row), round(down, var(--most) + var(--gap), var(--row))) - var(--gap) + 4px); }
.cards:empty { display: none; }
.card { border: 1px solid var(--line); border-radius: 10px; padding: 9px 11px 7px; background: var(--raised);
  min-width: 0; display: grid; gap: 7px; align-content: space-between; }
.card.full { border-color: var(--warn-line); }
.card.refusing { border-color: var(--warn-fill); background: var(--warn-tint); }
.card.chosen { outline: 2px solid var(--accent); outline-offset: -1px; }
.card .line { display: flex; align-items: baseline; gap: 8px; min-width: 0; }
.card .who { flex: 0 1 auto; border: 0; background: none; padding: 0; font-weight: 650; text-align: start; }
.card .ratio { margin-inline-start: auto; white-space: nowrap; color: var(--soft); }
.card .ratio b { font-size: 17px; color: var(--ink); font-weight: 650; }
.card.full .ratio b { color: var(--warn); }
.slots { display: grid; grid-auto-flow: column; grid-auto-columns: minmax(0, 1fr); gap: 5px; height: 26px; }
.slot { border-radius: 6px; border: 1px dashed var(--strong-line); color: var(--soft); font-size: 12px;
  line-height: 24px; padding: 0 8px; }
.slot.taken { border: 1px solid transparent; background: var(--accent-fill); color: #fff; font-weight: 550; }
.card.full .slot.taken { background: var(--warn-fill); color: #201400; }
.meter { height: 10px; margin: 8px 0; border-radius: 5px; background: var(--line); overflow: hidden; }
.meter i { display: block; height: 100%; width: 100%; background: var(--accent-fill); transform-origin: left;
  transition: transform .25s; }
.card.full .meter i { background: var(--warn-fill); }
.card .foot { min-height: 26px; align-items: center; color: var(--soft); font-size: 12.5px; }
.card.full .foot { color: var(--warn); }
.card .foot .refused { color: var(--bad); font-weight: 600; }
.card .foot button { margin-inline: auto -8px; font-size: 12.5px; padding: 1px 8px; color: var(--soft);
  background: none; border-color: transparent;
  white-space: nowrap; flex: none; }
.card .foot button:hover { color: var(--bad); border-color: var(--bad); }
.card .foot button.sure { background: var(--bad-fill); color: #fff; border-color: transparent; font-weight: 600; }
.dense .cards { --card: 78px; --gap: 8px; grid-template-columns: repeat(auto-fill, minmax(196px, 1fr)); }
.dense .card { gap: 3px; padding: 6px 9px 3px; }
.dense .meter { height: 8px; margin: 0; }
.dense .slots { height: 8px; gap: 3px; } .dense .slot { font-size: 0; padding: 0; border-radius: 4px; }

.scroll { overflow: auto; contain: content; max-height: 44vh; border-top: 1px solid var(--line);
  border-radius: 0 0 12px 12px; }
.requests .scroll { max-height: max(300px, 52vh); }
.row { display: grid; align-items: center; gap: 0 14px; padding: 6px 14px; border-bottom: 1px solid var(--line);
  min-height: 42px; }
.row > * { min-width: 0; }
.row:last-child { border-bottom: 0; }
.row.columns { position: sticky; top: 0; background: var(--panel); z-index: 1; min-height: 0 !important;
  padding-block: 5px; font-size: 11.5px;
  color: var(--soft); border-bottom: 1px solid var(--line) !important; }
.sessions .row { grid-template-columns: 92px minmax(70px, 1.1fr) minmax(70px, 1fr) minmax(80px,
  1.2fr) 52px minmax(158px, 1.5fr) 84px; }
.state span::first-letter { text-transform: uppercase; }
.state span { display: inline-block; }
.state { display: inline-flex; align-items: center; gap: 7px; white-space: nowrap; }
.state i { width: 8px; height: 8px; border-radius: 50%; background: var(--strong-line); flex: none; }
.row[data-state=active] .state { font-weight: 550; } .row[data-state=active] .state i { background: var(--good-fill); }
.row[data-state=active][data-late] .state i { background: var(--warn-fill); }
.row[data-state=expired] .state { color: var(--warn); } .row[data-state=expired] .state i {
  background: var(--warn-fill); }
.row[data-state=torn_down] .state { color: var(--soft); }
.row[data-state=killed] .state { color: var(--bad); } .row[data-state=killed] .state i { background: var(--bad-fill); }
.sessions .row:not([data-state=active], .columns) > :not(.state) { color: var(--soft); }
.lease { display: grid; gap: 4px; }
.lease .words { display: flex; justify-content: space-between; gap: 8px; font-size: 12.5px; white-space: nowrap; }
.lease .words span + span { color: var(--soft); overflow: hidden; text-overflow: ellipsis; }
.lease .track { height: 5px; border-radius: 3px; background: var(--line); overflow: hidden; position: relative; }
.lease .track i { display: block; height: 100%; background: var(--good-fill); transform-origin: left;
  border-radius: 3px; }
.lease .track b { position: absolute; inset-block: 0; width: 2px; background: var(--panel); }
.row[data-late] .track i { background: var(--warn-fill); } .row[data-late] .words span:first-child {
  color: var(--warn); font-weight: 550; }
.row:not([data-state=active]) .track { display: none; }
.fresh { animation: fresh 1.4s ease-out; }
@keyframes fresh { from { background: var(--accent-tint); } }

.requests .row { grid-template-columns: 104px minmax(104px, .8fr) minmax(70px, .9fr) minmax(130px,
  1.5fr) minmax(150px, 1.1fr); min-height: 36px;
  padding-block: 4px; border-inline-start: 3px solid transparent; }
.requests .route { display: flex; gap: 6px; align-items: baseline; white-space: nowrap; }
.route small, .answer small { color: var(--soft); font-size: 12px; }
.time-of { color: var(--soft); font: 12px/1.5 var(--mono); white-space: nowrap; }
.answer { display: flex; flex-wrap: wrap; gap: 3px 7px; align-items: center; }
.badge { display: inline-block; max-width: 100%; border-radius: 5px; padding: 0 7px; font-weight: 600;
  white-space: nowrap; overflow: hidden;
  text-overflow: ellipsis; unicode-bidi: isolate; }
.badge.ok { color: var(--good); padding-inline: 0; }
.badge.no { background: var(--bad-fill); color: #fff; }
.badge.wait { background: var(--warn-fill); color: #201400; }
.badge.gone { background: var(--bad-tint); color: var(--bad); }
.badge.fault { border: 1px solid var(--strong-line); color: var(--soft); font-weight: 500; font-size: 12px; }
.why { grid-column: 2 / -1; color: var(--bad); font-size: 12.5px; overflow-wrap: anywhere; unicode-bidi: isolate; }
.row.error { background: var(--bad-tint); border-inline-start-color: var(--bad-fill); }
.row.pending { border-inline-start-color: var(--warn-fill); background: var(--warn-tint); }

.clock { display: flex; flex-direction: column; }
.time { padding: 0 14px; font: 600 34px/1.1 var(--mono); letter-spacing: -.03em; white-space: nowrap; }
.sub { padding: 3px 14px 14px; color: var(--soft); font-size: 12.5px; }
.buttons { display: grid; grid-template-columns: repeat(3, 1fr); gap: 8px; padding: 0 14px 14px; margin-top: auto; }
.buttons button { font-weight: 600; padding-block: 6px; }
.held { display: flex; align-items: center; gap: 10px; padding: 11px 14px; background: var(--warn-tint);
  border-bottom: 1px solid var(--line);
  border-radius: 12px 12px 0 0; }
.held div { flex: 1; min-width: 0; } .held strong { display: block; color: var(--warn); }
.held span { color: var(--soft); font-size: 12.5px; overflow-wrap: anywhere; }
#faults { max-height: 230px; overflow: auto; }
#faults li { display: grid; grid-template-columns: minmax(0, 1fr) auto; gap: 0 10px; padding: 7px 14px;
  border-top: 1px solid var(--line); }
#faults small { color: var(--soft); grid-column: 1; overflow-wrap: anywhere; unicode-bidi: isolate; }
#faults .left { font-weight: 600; color: var(--warn); }
.faults .empty { padding-block: 4px 16px; text-align: start; padding-inline: 14px; }
form { border-top: 1px solid var(--line); padding: 12px 14px 14px; display: grid; gap: 8px; }
form label { display: grid; grid-template-columns: 76px minmax(0, 1fr); align-items: center; gap: 8px; }
form label > span { color: var(--soft); }
.pair { display: grid; grid-template-columns: minmax(0, 1fr) auto; gap: 12px; }
.fields { display: grid; gap: 8px; } .fields:empty { display: none; }
form label.check { display: flex; gap: 6px; } .check input { accent-color: var(--accent-fill); }
.wrong { color: var(--bad); font-size: 12.5px; overflow-wrap: anywhere; }
form .main { padding-block: 6px; }
form label.wide { grid-template-columns: minmax(0, 1fr); gap: 2px; }
form label.unit { grid-template-columns: 76px minmax(0, 1fr) auto; }
.names { display: grid; gap: 3px; padding: 7px 9px; border-radius: 7px; background: var(--raised); font-size: 12px; }
.names div { display: grid; grid-template-columns: 59px minmax(0, 1fr); gap: 8px; }
.names dt { color: var(--soft); }
.names code, .url, .token { font: 12px/1.5 var(--mono); overflow-wrap: anywhere; }

.connect { margin: 14px 20px 0; display: grid; grid-template-columns: minmax(0, 1fr) 296px; }
.connect .head { grid-column: 1 / -1; }
#urls { border-collapse: collapse; border-top: 1px solid var(--line); padding: 0; }
#urls th { font-weight: 400; text-align: start; white-space: nowrap; }
#urls th, #urls td { padding: 2px 14px; vertical-align: baseline; }
#urls td:last-child { text-align: end; }
#urls .group { color: var(--soft); }
#urls tbody { border-top: 1px solid var(--line); }
#urls tr:first-child > * { padding-top: 5px; } #urls tr:last-child > :not(.group) { padding-bottom: 5px; }
.copy { padding: 0 9px; font-size: 12.5px; }
#token-form { border-inline-start: 1px solid var(--line); align-content: start; }
.made { display: grid; gap: 6px; justify-items: start; } .made p { color: var(--soft); overflow-wrap: anywhere; }
.token { width: 100%; max-height: 118px; overflow: auto; padding: 5px 8px; border-radius: 7px;
  background: var(--raised); border: 1px solid var(--line); }

.toast { position: fixed; inset-block-end: 20px; inset-inline: 0; margin-inline: auto; width: fit-content;
  max-width: min(90vw, 560px);
  padding: 9px 16px; border-radius: 10px;
  background: var(--ink); color: var(--ground); font-weight: 550; opacity: 0; transform: translateY(8px);
  transition: .2s; pointer-events: none;
    overflow-wrap: anywhere; z-index: 4; }
.toast.shown { opacity: 1; transform: none; }
.toast.bad { background: var(--bad-fill); color: #fff; }

@media (min-width: 1760px) {
  main { grid-template-columns: minmax(0, 1.12fr) minmax(0, 1fr) 304px;
  grid-template-areas: "accounts accounts rail" "sessions requests rail";
    grid-template-rows: auto 1fr; }
  .scroll, .requests .scroll { max-height: max(420px, calc(100vh - 330px)); }
}
@media (max-width: 1120px) {
  .rules { order: 3; flex-basis: 100%; } .top { flex-wrap: wrap; position: static; } .tools {
  margin-inline-start: auto; }
  main { grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); grid-template-rows: none;
    grid-template-areas: "clock clock" "accounts accounts" "sessions sessions" "requests requests" "faults faults"; }
  .rail { display: contents; } .clock { grid-area: clock; } .faults { grid-area: faults; }
  .clock { flex-direction: row; align-items: center; } .clock .count { display: none; } .clock .buttons {
  margin: 0 0 0 auto; padding-block: 8px; }
  .sub { padding-block: 0; }
  .time { font-size: 24px; }
  form { max-width: 460px; }
  .connect { grid-template-columns: minmax(0, 1fr); } #token-form { border-inline-start: 0; }
}
@media (max-width: 760px) {
  .top { padding: 10px 14px; gap: 8px 14px; } main { padding: 10px; gap: 10px; grid-template-columns: minmax(0, 1fr);
    grid-template-areas: "clock" "accounts" "sessions" "requests" "faults"; }
  .brand { flex: 1 1 200px; } .rules { gap: 4px 18px; }
  .cards { --most: 62vh; } .clock { flex-wrap: wrap; }
  .clock .buttons { flex: 1 1 200px; margin: 0; padding-block: 0 12px; } .sub { padding-bottom: 8px; }
  [type=search] { flex: 1 1 100%; } .connect { margin: 10px 10px 0; }
  #urls, #urls tbody { display: block; }
  #urls tr { display: grid; grid-template-columns: minmax(0, 1fr) auto; padding: 4px 14px; }
  #urls tr > * { padding: 0 !important; } #urls .group, #urls .url { grid-column: 1 / -1; }
  #urls .group { padding-block: 4px !important; color: var(--ink); font-weight: 600; } #urls .url { order: 1; }
  .row.columns { position: absolute; width: 1px; height: 1px; padding: 0; overflow: hidden; clip-path: inset(50%); }
  .scroll, .requests .scroll { max-height: 72vh; }
  .sessions .row { grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); gap: 3px 12px; padding-block: 9px; }
  .sessions .row > :nth-child(1) { order: 2; justify-self: end; } .sessions .row > :nth-child(2) { order: 1;
  font-weight: 600; }
  .sessions .row > :nth-child(3) { order: 3; } .sessions .row > :nth-child(4) { order: 4; text-align: end; }
  .sessions .row > :nth-child(5) { display: none; } .sessions .row > :nth-child(6) { order: 5; grid-column: 1 / -1; }
  .sessions .row > :nth-child(7) { display: none; }
  .sessions .row > :nth-child(3), .sessions .row > :nth-child(4) { color: var(--soft); }
  .requests .row { grid-template-columns: minmax(0, 1fr) auto; gap: 2px 10px; padding-block: 7px; }
  .requests .row > :nth-child(1) { order: 3; } .requests .row > :nth-child(2) { order: 1; font-weight: 550; }
  .requests .row > :nth-child(3) { order: 4; justify-self: end; max-width: 46vw; }
  .requests .row > :nth-child(4) { display: none; } .requests .row > :nth-child(5) { order: 2; justify-content: end;
  max-width: 60vw; }
  .requests .row > :nth-child(6) { order: 5; grid-column: 1 / -1; }
}
@media (prefers-reduced-motion: reduce) { *, *::before { animation: none !important; transition: none !important; } }
"""
