"use strict";
// The page of the cluster: asks numafit-extender each 5 s for what has changed, and draws it once. All that
// comes from nodes and pods is put in as text (textContent), never as HTML. The heat map is a canvas; the
// table below it has the same facts for those who do not see it.
(() => {
const EVERY_MS = 5000, PAGE_ROWS = 50, POOLS_MAX = 500, MINUTES = 60, MAP_PX = 540, PERCENT = 100,
	CELLS = [[28, 20], [22, 17], [17, 14], [13, 12], [10, 10], [8, 9], [6, 8], [5, 7], [4, 6], [3, 4]],
	ROOMY = 5, ROW_OF_ZONES = 8, MANY_ZONES = 32, KNOWN = 0, STALE = 1, UNREPORTED = 2,
	CHART = { most: 900, height: 160, left: 44, right: 10, top: 10, bottom: 22 };
const { $, el, fill, size, fetchText, setState, poll } = ui;
const byName = new Intl.Collator(undefined, { numeric: true });
const number = n => n.toLocaleString("en"), count = (n, what) => `${number(n)} ${what}${n === 1 ? "" : "s"}`;
const MIB = 2 ** 20;

const nodes = new Map();
let at = "", figures = null, samples = [], refusals = [], shown = [], selected = null, first = 0, sortBy = "name", descending = false;

// Nodes

const sum = list => list.reduce((a, b) => a + b, 0);
const each = (all, nr) => Array.isArray(all) ? all : new Array(nr).fill(all);
function nodeOf([name, pool, state, free, all, mib, mibAll, lost, ids]) {
	const cpus = each(all, free.length), memory = each(mibAll, mib.length);
	return { name, pool, state, free, cpus, mib, memory, lost, ids: ids || free.map((_, i) => i),
		left: sum(free), all: sum(cpus), mibLeft: sum(mib), mibAll: sum(memory) };
}
function takeIn(doc) {
	if (doc.all) nodes.clear();
	for (const name of doc.gone) nodes.delete(name);
	for (const row of doc.nodes) nodes.set(row[0], nodeOf(row));
	at = doc.at;
	figures = doc;
	if (doc.samples) samples = doc.samples;
	if (doc.refusals) refusals = doc.refusals;
	return doc.all || doc.nodes.length > 0 || doc.gone.length > 0;
}

const STATES = ["as reported", "stale", "no report"];
// "3, 0, 16 of 16 each"; "3 of 8, 4 of 16" where NUMA nodes differ
function ofEach(free, all, text) {
	if (!free.length) return "not known";
	if (all.every(n => n === all[0])) return `${free.map(text).join(", ")} of ${text(all[0])}${free.length > 1 ? " each" : ""}`;
	return free.map((n, i) => `${text(n)} of ${text(all[i])}`).join(", ");
}
const gib = mib => String(Number((mib / 1024).toFixed(mib < 10240 ? 1 : 0)));
const COLUMNS = [
	["name", "Node", "name", n => n.name, n => n.name],
	["pool", "Pool", "name", n => n.pool || "none", n => n.pool],
	["state", "State", "short", n => STATES[n.state], n => n.state],
	["left", "Free CPUs", "short", n => n.state === UNREPORTED ? "not known" : `${n.left} of ${n.all}`, n => n.left],
	["zones", "By NUMA node", "list", n => ofEach(n.free, n.cpus, String), n => Math.max(0, ...n.free)],
	["lost", "Fragmented", "short", n => n.left ? `${n.lost} of ${n.left}` : "none", n => n.lost],
	["mib", "Free memory", "short", n => n.mibAll ? `${size(n.mibLeft * MIB)} of ${size(n.mibAll * MIB)}` : "not known", n => n.mibLeft],
	["memory", "GiB by NUMA node", "list", n => n.mibAll ? ofEach(n.mib, n.memory, gib) : "not known", n => Math.max(0, ...n.mib)],
];
const columns = () => COLUMNS.filter(([key]) => key !== "pool" || figures?.pool_label);
const factsOf = n => `${n.name}${figures.pool_label ? `, pool ${n.pool || "none"}` : ""}: ` + (n.state === UNREPORTED ? "no report"
	: `${n.state === STALE ? "stale, " : ""}free CPUs ${ofEach(n.free, n.cpus, String)}` + (n.mibAll ? `; free memory, GiB ${ofEach(n.mib, n.memory, gib)}` : ""));

// What the filters let through, in the table's order, which is the map's, too
function choose() {
	const wanted = $("filter").value.toLowerCase(), pool = $("pool").value, value = COLUMNS.find(([key]) => key === sortBy)[4];
	const only = pool !== "" ? pools[Number(pool)]?.[0] : undefined;
	shown = [...nodes.values()].filter(n => (only === undefined || n.pool === only) && n.name.toLowerCase().includes(wanted));
	const turned = descending ? -1 : 1, text = sortBy === "name" || sortBy === "pool";
	shown.sort((a, b) => turned * (text ? byName.compare(value(a), value(b)) : value(a) - value(b)) || byName.compare(a.name, b.name));
	for (let i = 0; i < shown.length; i++) shown[i].place = i;
	if (selected && nodes.get(selected.name) !== selected) selected = nodes.get(selected.name) || null;
	if (selected && shown[selected.place] !== selected) selected = null;
	if (first >= shown.length) first = 0;
}
let pools = [];
function drawPools() {
	const now = new Map();
	for (const n of nodes.values()) now.set(n.pool, (now.get(n.pool) || 0) + 1);
	const next = [...now].sort((a, b) => b[1] - a[1]).slice(0, POOLS_MAX).sort((a, b) => byName.compare(a[0], b[0]));
	$("by-pool").hidden = !figures.pool_label;
	if (JSON.stringify(next) === JSON.stringify(pools)) return;
	const was = $("pool").value === "" ? undefined : pools[Number($("pool").value)][0];
	pools = next;
	fill($("pool"), el("option", { value: "" }, `all (${number(nodes.size)})`),
		...pools.map(([pool, nr], i) => el("option", { value: String(i) }, `${pool || "none"} (${number(nr)})`)));
	const place = pools.findIndex(([pool]) => pool === was);
	$("pool").value = was === undefined || place < 0 ? "" : String(place);
}

// The heat map: a block for each node, a cell in it for each NUMA node. Only what is in view is drawn.

const STALE_COLOUR = 6, BUCKETS = ["none free", "up to 25 % free", "up to 50 %", "up to 75 %", "more than 75 %", "all free"];
const bucketOf = (free, all) => free <= 0 ? 0 : free >= all ? 5 : 1 + Math.min(3, Math.floor(free / all * 4 - 1e-9));
let grid = null;
function layOut() {
	const most = Math.max(1, ...new Set(shown.map(n => n.free.length))), width = $("whole").clientWidth;
	const across = most <= ROW_OF_ZONES ? most : most <= MANY_ZONES ? ROW_OF_ZONES : 2 * ROW_OF_ZONES, down = Math.ceil(most / across);
	for (const [w, h] of CELLS) {
		const gap = w >= ROOMY ? 1 : 0, between = w >= ROOMY ? 4 : 2;
		const blockW = across * (w + gap) - gap + between, blockH = down * (h + gap) - gap + between;
		const perRow = Math.max(1, Math.floor((width + between) / blockW)), rows = Math.ceil(shown.length / perRow);
		grid = { w, h, gap, across, down, blockW, blockH, between, perRow, rows, width, height: Math.max(blockH, rows * blockH - between) };
		if (grid.height <= MAP_PX) break;
	}
	$("whole").style.height = `${grid.height}px`;
}
// The first line of a row of cells is painted, and copied for the others: 40,000 cells take a millisecond or two.
function paintCells(image, top, scale, colours) {
	const pixels = new Uint32Array(image.data.buffer), { width, height } = image, { w, h, gap, across, down, blockW, blockH, perRow, rows } = grid;
	const memory = $("colour").value === "memory", px = v => Math.round(v * scale);
	pixels.fill(0);
	for (let row = Math.floor(top / blockH); row < rows && row * blockH - top < height / scale; row++)
		for (let d = 0; d < down; d++) {
			const y = row * blockH + d * (h + gap) - top, from = Math.max(0, px(y)), to = Math.min(height, px(y + h));
			if (from >= to) continue;
			for (let i = row * perRow; i < Math.min(shown.length, (row + 1) * perRow); i++) {
				const n = shown[i], free = memory ? n.mib : n.free, all = memory ? n.memory : n.cpus, x = (i - row * perRow) * blockW;
				if (isUnknown(n, memory)) continue;
				for (let z = d * across; z < Math.min(free.length, (d + 1) * across); z++) {
					const left = x + (z - d * across) * (w + gap);
					pixels.fill(colours[n.state === STALE ? STALE_COLOUR : bucketOf(free[z], all[z])], from * width + px(left), from * width + px(left + w));
				}
			}
			for (let line = from + 1; line < to; line++) pixels.copyWithin(line * width, from * width, (from + 1) * width);
		}
}
const isUnknown = (n, memory) => n.state === UNREPORTED || !n.free.length || (memory && !n.mibAll);
// A line through each stale node, a box for each that nothing is known of, and where the reader is
function drawMarks(pen, top, height, colour) {
	const slashes = new Path2D(), boxes = new Path2D(), { blockW, blockH, between, perRow } = grid, memory = $("colour").value === "memory";
	const w = blockW - between, h = blockH - between, from = Math.floor(top / blockH) * perRow, to = Math.min(shown.length, Math.ceil((top + height) / blockH) * perRow);
	for (let i = from; i < to; i++) {
		const n = shown[i], x = i % perRow * blockW, y = Math.floor(i / perRow) * blockH - top;
		if (isUnknown(n, memory)) {
			boxes.rect(x + .5, y + .5, w - 1, h - 1);
		} else if (n.state === STALE) {
			slashes.moveTo(x, y + h);
			slashes.lineTo(x + w, y);
		}
	}
	pen.lineWidth = 2;
	pen.strokeStyle = colour("--card");
	pen.stroke(slashes);
	pen.lineWidth = 1;
	pen.strokeStyle = colour("--dim");
	pen.setLineDash([2, 2]);
	pen.stroke(boxes);
	pen.setLineDash([]);
	if (!selected) return;
	pen.lineWidth = 2;
	pen.strokeStyle = colour("--mark");
	pen.strokeRect(selected.place % perRow * blockW - 1, Math.floor(selected.place / perRow) * blockH - top - 1, w + 2, h + 2);
}
let image = null;
const ofPixel = text => new Uint32Array(new Uint8Array([1, 3, 5].map(i => parseInt(text.slice(i, i + 2), 16)).concat(255)).buffer)[0]; // "#rrggbb"
function drawMap() {
	if (!grid) return;
	const view = $("view"), canvas = $("heat"), scale = window.devicePixelRatio || 1, style = getComputedStyle(document.documentElement);
	const height = Math.min(grid.height, view.clientHeight), top = Math.min(view.scrollTop, Math.max(0, grid.height - height));
	const pen = canvas.getContext("2d"), colour = name => style.getPropertyValue(name).trim();
	const wide = Math.max(1, Math.round(grid.width * scale)), high = Math.max(1, Math.round(height * scale));
	if (canvas.width !== wide || canvas.height !== high || !image) {
		canvas.width = wide;
		canvas.height = high;
		canvas.style.width = `${grid.width}px`;
		canvas.style.height = `${height}px`;
		image = pen.createImageData(wide, high);
	}
	const colours = [...BUCKETS.map((_, i) => colour(`--heat-${i}`)), colour("--stale")].map(ofPixel);
	paintCells(image, top, scale, colours);
	pen.setTransform(1, 0, 0, 1, 0, 0);
	pen.putImageData(image, 0, 0);
	pen.setTransform(scale, 0, 0, scale, 0, 0);
	drawMarks(pen, top, height, colour);
}
let asked = false;
function drawMapSoon() {
	if (asked) return;
	asked = true;
	requestAnimationFrame(() => { asked = false; drawMap(); });
}
function drawLegend() {
	const memory = $("colour").value === "memory", nr = new Array(BUCKETS.length).fill(0);
	let stale = 0, none = 0, zones = 0;
	for (const n of shown) {
		if (n.state === STALE) stale++;
		if (n.state === UNREPORTED) none++;
		const free = memory ? n.mib : n.free, all = memory ? n.memory : n.cpus;
		zones += free.length;
		if (n.state === KNOWN) free.forEach((f, z) => nr[bucketOf(f, all[z])]++);
	}
	const row = (mark, text) => el("li", null, mark, text);
	const mark = i => { const m = el("span", { className: "heat" }); m.style.background = `var(--heat-${i})`; return m; };
	fill($("legend"), ...BUCKETS.map((text, i) => row(mark(i), `${text} (${number(nr[i])})`)),
		row(el("span", { className: "heat stale" }), `stale (${count(stale, "node")})`), row(el("span", { className: "heat none" }), `no report (${count(none, "node")})`));
	$("nr-zones").textContent = `(${number(zones)} on ${count(shown.length, "node")})`;
	$("heat").setAttribute("aria-label", `Free ${memory ? "memory" : "CPUs"} of each NUMA node: ${BUCKETS.map((text, i) => `${text} ${nr[i]}`).join(", ")}. ` +
		"Arrow keys go from node to node, Enter to its row in the table.");
}
function point(n) {
	selected = n;
	$("pointed").textContent = n ? factsOf(n) : "In the table's order. Point at a node, or go to it with the arrow keys, to see what it has.";
	drawMapSoon();
}
function nodeAt(event) {
	const box = $("heat").getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top + Math.min($("view").scrollTop, Math.max(0, grid.height - box.height));
	const column = Math.floor(x / grid.blockW);
	return column < grid.perRow ? shown[Math.floor(y / grid.blockH) * grid.perRow + column] || null : null;
}
function bringIntoView(n) {
	const y = Math.floor(n.place / grid.perRow) * grid.blockH, view = $("view");
	if (y < view.scrollTop) view.scrollTop = y;
	if (y + grid.blockH > view.scrollTop + view.clientHeight) view.scrollTop = y + grid.blockH - view.clientHeight;
}
function onMapKey(event) {
	const here = selected ? selected.place : -1, last = shown.length - 1;
	const to = { ArrowRight: here + 1, ArrowLeft: here - 1, ArrowDown: here < 0 ? 0 : here + grid.perRow, ArrowUp: here - grid.perRow, Home: 0, End: last }[event.key];
	if (event.key === "Enter" && selected) {
		first = selected.place - selected.place % PAGE_ROWS;
		drawRows();
		$("rows").children[selected.place - first]?.focus();
	} else if (to !== undefined && last >= 0) {
		point(shown[Math.max(0, Math.min(last, to))]);
		bringIntoView(selected);
	} else {
		return;
	}
	event.preventDefault();
}

// The table

function drawColumns() {
	fill($("columns"), ...columns().map(([key, title]) => {
		const button = el("button", { type: "button" }, title);
		button.addEventListener("click", () => {
			descending = sortBy === key && !descending;
			sortBy = key;
			first = 0;
			drawColumns();
			drawNodes();
			$("columns").querySelector(`[data-key="${key}"] button`).focus();
		});
		const th = el("th", { role: "columnheader", scope: "col", "aria-sort": sortBy === key ? (descending ? "descending" : "ascending") : "none" }, button);
		th.dataset.key = key;
		return th;
	}));
}
function drawRow(n) {
	const tr = el("tr", { role: "row", tabIndex: 0, "aria-rowindex": String(n.place + 2), className: n.state === STALE ? "stale" : n.state === UNREPORTED ? "none" : "" },
		...columns().map(([key, title, kind, text]) => el("td", { className: kind, role: "cell", "data-label": title },
			el("span", key === "state" && n.state !== KNOWN ? { className: "note" } : null, text(n)))));
	tr.dataset.node = n.name;
	tr.addEventListener("focus", () => { const now = nodes.get(n.name); if (now) { point(now); bringIntoView(now); } });
	return tr;
}
function drawRows() {
	const focused = document.activeElement?.dataset?.node, last = Math.min(shown.length, first + PAGE_ROWS);
	$("nr-nodes").textContent = shown.length === nodes.size ? `(${number(shown.length)})` : `(${number(shown.length)} of ${number(nodes.size)})`;
	$("table").setAttribute("aria-rowcount", String(shown.length + 1));
	fill($("rows"), ...shown.slice(first, last).map(drawRow));
	if (!shown.length)
		fill($("rows"), el("tr", { role: "row" }, el("td", { role: "cell", colSpan: columns().length }, nodes.size ? "No node is in this pool and has this in its name." : "No node is known.")));
	$("where").textContent = shown.length ? `${number(first + 1)} to ${number(last)} of ${number(shown.length)}` : "";
	$("pager").hidden = shown.length <= PAGE_ROWS;
	$("before").disabled = first === 0;
	$("after").disabled = last === shown.length;
	if (focused !== undefined) [...$("rows").children].find(tr => tr.dataset.node === focused)?.focus({ preventScroll: true });
}
function turnPage(by) {
	first = Math.max(0, Math.min(first + by * PAGE_ROWS, shown.length - 1));
	drawRows();
	$("table").scrollIntoView({ block: "nearest" });
}
// All that is made of the nodes
function drawNodes() {
	choose();
	layOut();
	drawLegend();
	drawMap();
	drawRows();
	if (selected || $("pointed").textContent === "") point(selected);
	const left = sum(shown.map(n => n.left)), lost = sum(shown.map(n => n.lost));
	$("lost").textContent = left ? `Now: of ${number(left)} free CPUs${shown.length === nodes.size ? "" : " of the nodes that are shown"}, ${number(lost)} (${(lost / left * PERCENT).toFixed(1)} %) are of no use to pods of ${figures.pod_cpus} CPUs on one NUMA node.`
		: "Now: no CPU is free.";
}

// Fragmentation

const shareOf = ([, , left, lost]) => left ? lost / left * PERCENT : 0;
const clock = ms => new Date(ms).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
function svg(tag, attributes, text) {
	const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
	for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
	if (text !== undefined) e.textContent = text;
	return e;
}
function drawChart() {
	const { most, height, left, right, top, bottom } = CHART, width = Math.max(200, Math.min(most, $("chart").clientWidth)), end = samples.length ? samples[samples.length - 1][0] : figures.now_ms;
	const x = ms => left + (width - left - right) * Math.max(0, 1 - (end - ms) / (MINUTES * 60000)), y = share => top + (height - top - bottom) * (1 - share / PERCENT);
	const shares = samples.map(shareOf), said = shares.map(s => s.toFixed(1));
	const chart = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": samples.length
		? `Fragmented share of free CPUs from ${said[0]} % to ${said[said.length - 1]} %, at most ${Math.max(...shares).toFixed(1)} %, in ${count(samples.length, "sample")}` : "No sample yet" });
	for (const share of [0, 50, 100])
		chart.append(svg("line", { class: "grid", x1: left, x2: width - right, y1: y(share), y2: y(share) }), svg("text", { x: left - 6, y: y(share) + 4, "text-anchor": "end" }, `${share} %`));
	chart.append(svg("text", { x: left, y: height - 5 }, "an hour before"), svg("text", { x: width - right, y: height - 5, "text-anchor": "end" }, samples.length ? clock(end) : "now"));
	const points = samples.map((s, i) => `${x(s[0]).toFixed(1)},${y(shares[i]).toFixed(1)}`);
	if (points.length > 1) chart.append(svg("polyline", { class: "line", points: points.join(" ") }));
	if (points.length) chart.append(svg("circle", { class: "dot", cx: x(end), cy: y(shares[shares.length - 1]), r: 3 }));
	fill($("chart"), chart);
	drawSamples();
}
function drawSamples() {
	const cell = (title, text) => el("td", { role: "cell", "data-label": title }, el("span", null, text)), titles = ["Time", "Fragmented", "Free CPUs", "of CPUs", "Nodes"];
	fill($("samples").querySelector("div"), $("samples").open ? el("table", { role: "table" },
		el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, ...titles.map(t => el("th", { role: "columnheader", scope: "col" }, t)))),
		el("tbody", { role: "rowgroup" }, ...[...samples].reverse().map(s => el("tr", { role: "row" }, cell(titles[0], clock(s[0])), cell(titles[1], `${shareOf(s).toFixed(1)} %`),
			cell(titles[2], number(s[2])), cell(titles[3], number(s[4])), cell(titles[4], number(s[1])))))) : "");
}

// Refusals and hints, by the words that the document has

const WORDS = {
	"TopologyAffinityError" : "the node's policy does not admit what its NUMA nodes have left",
	"SMTAlignmentError" : "whole cores are wanted, and are not asked for",
	"UnexpectedAdmissionError" : "the node has another reason",
	"CreateContainerError" : "a container could not be created there",
	"NUMAHint" : "the scheduler's hint was rejected",
	"other" : "another reason of numafitd's",
	"no-node" : "no node has room on its NUMA nodes",
	"accepted-stale" : "as the scheduler meant it, though the node has changed since",
	"repaired" : "other NUMA nodes, as few and no farther apart",
	"repaired:cpus" : "these NUMA nodes, and other CPUs of them than the hint names",
	"rejected:format" : "the hint cannot be read",
	"rejected:version" : "the hint is of another version",
	"rejected:uid" : "written for another pod",
	"rejected:node" : "written for another node",
	"rejected:clock" : "made in the future",
	"rejected:expired" : "too old",
	"rejected:numa" : "there is no such NUMA node",
	"rejected:not-fit" : "there is not enough of something",
	"rejected:not-narrowest" : "fewer NUMA nodes are enough",
	"rejected:farther" : "others are closer together",
	"rejected:policy" : "the topology policy chooses others",
	"rejected:foreign-cpuset" : "its CPUs are reserved, or another container's",
	"bound-with-hint" : "with a hint for NUMA nodes",
	"bound" : "without: NUMA nodes do not matter, or are not known",
	"already-bound" : "bound by an earlier attempt",
	"conflict" : "the node had changed: tried again",
	"refused" : "refused by the API server",
	"unknown" : "no answer, or no such pod",
};
const wordsOf = kind => Object.hasOwn(WORDS, kind) ? WORDS[kind] : "";
function drawTally(title, rows) {
	return el("table", { role: "table" }, el("caption", null, title), el("tbody", { role: "rowgroup" }, ...rows.map(([kind, words, n]) =>
		el("tr", { role: "row", className: n ? "" : "zero" }, el("td", { role: "cell" }, kind, words ? el("div", { className: "why" }, words) : null), el("td", { role: "cell" }, number(n))))));
}
// There are many ways to be rejected: those that have not come are one row
function verdicts(all) {
	const isRejected = ([kind]) => kind.startsWith("rejected"), rejected = all.filter(row => isRejected(row) && row[2]);
	return [...all.filter(row => !isRejected(row)), ...rejected, [rejected.length ? "rejected otherwise" : "rejected", "", 0]];
}
function drawTallies() {
	const rows = of => Object.entries(of).map(([kind, n]) => [kind, wordsOf(kind), n]);
	fill($("tallies"), drawTally("Refusals, by kind", rows(figures.refused)), drawTally("Hints, by verdict", verdicts(rows(figures.hints))), drawTally("Bindings, by what came of them", rows(figures.binds)),
		drawTally("Filter, and what is kept", [["Filters answered", "", figures.filters], ["Nodes asked about", "", figures.nodes_asked], ["Nodes left out", "for all reasons", figures.nodes_left_out],
			["Avoided", "workloads and nodes that are kept apart after a refusal", figures.avoided], ["Pods on their way", "bound, and in no report yet", figures.waiting]]));
}
function drawRefusals() {
	$("nr-refusals").textContent = refusals.length ? `(${refusals.length})` : "";
	fill($("refused"), ...refusals.map(r => el("li", null, el("span", { className: "verdict" }, r.kind), " ", el("span", { className: "name" }, `${r.namespace}/${r.pod}`),
		r.node ? " on " : null, r.node ? el("span", { className: "name" }, r.node) : null,
		el("span", { className: "when" }, ` ${new Date(r.time_ms).toLocaleTimeString()}${r.times > 1 ? `, ${r.times} times` : ""}`), el("p", { className: "why" }, wordsOf(r.kind)))));
	if (!refusals.length) fill($("refused"), el("li", { className: "empty" }, "None since this replica has started."));
}
function drawHead() {
	const all = [...nodes.values()], cpus = sum(all.map(n => n.all)), left = sum(all.map(n => n.left));
	$("summary").textContent = [count(nodes.size, "node"), `${number(left)} of ${number(cpus)} CPUs free`, `${number(all.filter(n => n.state === STALE).length)} stale`,
		`${number(all.filter(n => n.state === UNREPORTED).length)} without a report`, count(figures.pods, "pod"), `numafit-extender ${figures.version}`].join(" · ");
	$("problems").hidden = !figures.unready;
	fill($("problems"), figures.unready ? el("li", null, `Nothing is decided yet: ${figures.unready}.`) : "");
}

// One draw for each answer
let drawn = "";
function draw(changed) {
	const start = performance.now(), label = figures.pool_label;
	drawHead();
	if (changed || label !== drawn) {
		drawPools();
		if (label !== drawn || !$("columns").children.length) drawColumns();
		drawNodes();
		drawn = label;
	}
	if (figures.samples || !$("chart").children.length) drawChart();
	drawTallies();
	if (figures.refusals || !$("refused").children.length) drawRefusals();
	performance.clearMeasures("draw");
	performance.measure("draw", { start });
	document.body.dataset.drawn = "yes";
}
async function refresh() {
	try {
		const doc = JSON.parse(await fetchText(`/api/cluster?since=${at}`));
		draw(takeIn(doc));
		setState(true, "up to date");
	} catch (error) {
		setState(false, "numafit-extender does not answer; it is asked again each 5 s");
	}
}

$("filter").addEventListener("input", () => { first = 0; if (figures) drawNodes(); });
$("pool").addEventListener("change", () => { first = 0; drawNodes(); });
$("colour").addEventListener("change", () => { drawLegend(); drawMap(); });
$("choice").addEventListener("submit", event => event.preventDefault());
$("heat").addEventListener("pointermove", event => { const n = nodeAt(event); if (n !== selected) point(n); });
$("heat").addEventListener("keydown", onMapKey);
$("heat").addEventListener("focus", () => { if (!selected && shown.length) point(shown[0]); });
$("view").addEventListener("scroll", drawMapSoon, { passive: true });
$("before").addEventListener("click", () => turnPage(-1));
$("after").addEventListener("click", () => turnPage(1));
$("samples").addEventListener("toggle", drawSamples);
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawMapSoon);
new ResizeObserver(() => { if (figures && grid && grid.width !== $("whole").clientWidth) { layOut(); drawMap(); drawChart(); } }).observe($("view"));
poll(refresh, EVERY_MS);
})();
