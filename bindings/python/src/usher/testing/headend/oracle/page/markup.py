"""The page's HTML."""

from __future__ import annotations

ICON_SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="8" fill="#4f5bd5"/>'
    '<rect x="7" y="8" width="18" height="4" rx="2" fill="#fff"/>'
    '<rect x="7" y="14" width="18" height="4" rx="2" fill="#fff" opacity=".75"/>'
    '<rect x="7" y="20" width="9" height="4" rx="2" fill="#fff" opacity=".45"/></svg>'
)

MARKUP = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Usher head-end</title>
<link rel="icon" href="@ICON@">
<style>@STYLE@</style>
</head>
<body data-link="connecting">

<header class="top">
  <div class="brand">
    <svg viewBox="0 0 32 32" width="28" height="28" aria-hidden="true">
      <rect width="32" height="32" rx="8"/><g fill="#fff">
      <rect x="7" y="8" width="18" height="4" rx="2"/><rect x="7" y="14" width="18" height="4" rx="2" opacity=".75"/>
      <rect x="7" y="20" width="9" height="4" rx="2" opacity=".45"/></g></svg>
    <div><h1>Usher head-end</h1><button type="button" class="address" id="address"
      title="Copy the SSM URL for a player"></button></div>
  </div>
  <dl class="rules" id="rules"></dl>
  <div class="tools">
    <button type="button" id="connect-open" aria-expanded="false" aria-controls="connect">Connect a player</button>
    <span class="link" id="link" role="status"><i aria-hidden="true"></i><span id="link-text">Connecting</span></span>
    <button type="button" class="quiet" id="theme" title="Light, dark, or as the system is set"></button>
  </div>
</header>
<p class="notice" id="notice" role="alert" hidden></p>

<section class="panel connect" id="connect" aria-labelledby="connect-title" hidden>
  <div class="head"><h2 id="connect-title">Connect a player</h2><span class="count">with these URLs and a content
    token</span></div>
  <table id="urls" aria-label="URLs of this head-end"></table>
  <form id="token-form" autocomplete="off">
    <h3>Make a content token</h3>
    <label><span>account</span><input id="token-account" list="names" required></label>
    <label><span>content</span><input id="token-content" list="contents" required></label>
    <label><span>device</span><input id="token-device" placeholder="any device"></label>
    <label><span>streams</span><input id="token-streams" type="number" min="0" max="1000000"></label>
    <label class="unit"><span>valid for</span><input id="token-valid" type="number" value="86400" placeholder="ever"
      aria-describedby="token-seconds"><span id="token-seconds">s</span></label>
    <label class="check"><input id="token-control" type="checkbox" checked><span>session control</span></label>
    <datalist id="contents"></datalist>
    <p class="wrong" id="token-wrong" role="alert" hidden></p>
    <button type="submit" class="main">Make a token</button>
    <div class="made" id="made" hidden><p id="made-for" role="status"></p>
      <div class="token" id="token" tabindex="0" role="region" aria-label="Content token"></div></div>
  </form>
</section>

<main>
  <section class="panel accounts" aria-labelledby="accounts-title">
    <div class="head"><h2 id="accounts-title">Accounts</h2><span class="count" id="accounts-count"></span><span
      class="grow"></span>
      <button type="button" class="chip" id="scope" hidden></button></div>
    <div class="cards" id="accounts" tabindex="0" role="group" aria-labelledby="accounts-title"></div>
    <p class="empty" id="accounts-empty" hidden></p>
  </section>

  <section class="panel sessions" aria-labelledby="sessions-title">
    <div class="head"><h2 id="sessions-title">Sessions</h2><span class="count" id="sessions-count"></span><span
      class="grow"></span>
      <div class="switch" role="group" aria-label="Which sessions">
        <button type="button" data-state="all" aria-pressed="true">All</button>
        <button type="button" data-state="active" aria-pressed="false">Held</button>
        <button type="button" data-state="ended" aria-pressed="false">Over</button>
      </div>
      <input type="search" id="search" placeholder="Filter account, device, content"
        aria-label="Filter sessions and requests" autocomplete="off" spellcheck="false"></div>
    <div class="scroll" tabindex="0" role="table" aria-labelledby="sessions-title">
      <div class="row columns" role="row"><span role="columnheader">State</span><span role="columnheader">Account</span>
        <span role="columnheader">Device</span><span role="columnheader">Content</span><span
        role="columnheader">Period</span>
        <span role="columnheader">Last keep-alive</span><span role="columnheader">Token</span></div>
      <div id="sessions" role="rowgroup"></div>
      <p class="empty" id="sessions-empty" hidden></p>
    </div>
  </section>

  <section class="panel requests" aria-labelledby="requests-title">
    <div class="head"><h2 id="requests-title">Requests</h2><span class="count" id="requests-count"></span><span
      class="grow"></span>
      <div class="switch" role="group" aria-label="Which requests">
        <button type="button" data-errors="false" aria-pressed="true">All</button>
        <button type="button" data-errors="true" aria-pressed="false">Errors</button>
      </div></div>
    <div class="scroll" tabindex="0" role="table" aria-labelledby="requests-title">
      <div class="row columns" role="row"><span role="columnheader">Time</span><span role="columnheader">Request</span>
        <span role="columnheader">Account</span><span role="columnheader">Tokens sent → given</span><span
        role="columnheader">Answer</span></div>
      <div id="requests" role="rowgroup"></div>
      <p class="empty" id="requests-empty" hidden></p>
    </div>
  </section>

  <div class="rail">
  <section class="panel clock" aria-labelledby="clock-title">
    <div class="head"><h2 id="clock-title">Clock</h2><span class="count" id="clock-kind"></span></div>
    <p class="time" id="time"></p>
    <p class="sub" id="date"></p>
    <div class="buttons" id="advance" hidden>
      <button type="button" data-ms="1000">+1 s</button>
      <button type="button" data-ms="10000">+10 s</button>
      <button type="button" data-ms="60000">+60 s</button>
    </div>
  </section>

  <section class="panel faults" aria-labelledby="faults-title">
    <div class="held" id="held" hidden><div><strong id="held-count"></strong><span id="held-what"></span></div>
      <button type="button" class="main" id="release">Release</button></div>
    <div class="head"><h2 id="faults-title">Faults to come</h2><span class="count" id="faults-count"></span><span
      class="grow"></span>
      <button type="button" class="quiet" id="clear" hidden>Clear</button></div>
    <ul id="faults"></ul>
    <p class="empty" id="faults-empty" hidden></p>
    <form id="form" autocomplete="off">
      <h3>Script a fault</h3>
      <label><span>The next</span><select id="route"></select></label>
      <label class="wide"><span>gets</span><select id="kind"></select></label>
      <div class="fields" id="fields"></div>
      <dl class="names" id="fault-names"></dl>
      <div class="pair"><label><span>times</span><input id="times" type="number" min="1" max="1000" value="1"></label>
        <label class="check"><input id="always" type="checkbox"><span>every time</span></label></div>
      <label><span>of</span><input id="account" list="names" placeholder="any account"></label>
      <datalist id="names"></datalist>
      <p class="wrong" id="wrong" role="alert" hidden></p>
      <button type="submit" class="main">Script it</button>
    </form>
  </section>
  </div>
</main>
<p class="toast" id="toast" role="status"></p>
<noscript><p class="notice">This page is live and needs JavaScript. The same in text:
  <a href="/_control/journal?text=true">the journal</a>.</p></noscript>
<script>@SCRIPT@</script>
</body>
</html>
"""
