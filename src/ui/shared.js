"use strict";
// What the pages of a node and of a cluster share. All that comes from outside is put in as text
// (textContent), never as HTML.
const ui = (() => {
const PATIENCE_MS = 5000;
const $ = id => document.getElementById(id);

// An element with properties and children; a string child is text.
function el(tag, props, ...children) {
	const e = document.createElement(tag);
	for (const [k, v] of Object.entries(props || {}))
		if (k.includes("-") || k === "role") e.setAttribute(k, v);
		else e[k] = v;
	e.append(...children.filter(c => c !== null && c !== undefined));
	return e;
}
const fill = (e, ...children) => e.replaceChildren(...children);

const count = (n, what) => `${n} ${what}${n === 1 ? "" : "s"}`;
function size(bytes) {
	const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
	let u = 0;
	for (; bytes >= 1024 && u < units.length - 1; u++) bytes /= 1024;
	return `${Number(bytes.toFixed(bytes < 10 && u ? 1 : 0))} ${units[u]}`;
}

async function fetchText(path) {
	const answer = await fetch(path, { cache: "no-store", signal: AbortSignal.timeout(PATIENCE_MS) });
	if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
	return answer.text();
}
function setState(up, text) {
	if ($("state").textContent !== text) $("state").textContent = text;
	$("state").className = up ? "up" : "down";
}
// Call refresh() now and each so many ms, but not while the tab is hidden.
function poll(refresh, everyMs) {
	let timer = null;
	async function turn() {
		clearTimeout(timer);
		if (document.hidden) { setState(true, "paused"); return; }
		await refresh();
		clearTimeout(timer);
		timer = setTimeout(turn, everyMs);
	}
	document.addEventListener("visibilitychange", turn);
	turn();
}
return { $, el, fill, count, size, fetchText, setState, poll };
})();
