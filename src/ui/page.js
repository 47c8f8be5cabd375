"use strict";
// The status page of one node: asks numafitd each 2 s, and draws what has changed. All that comes from
// pods is put in as text (textContent), never as HTML.
(() => {
const EVERY_MS = 2000, MACHINE_EVERY = 15, MANY_NODES = 16, GOLDEN_ANGLE = 137.508, LEGEND_MAX = 8, SHADES = ["0%", "-9%", "11%"], RETRIES = 5, RETRY_MS = 300, LONG_PATIENCE_MS = 30000,
	TOO_MANY = 429;
const { $, el, fill, count, size, fetchText, setState, poll } = ui;
const HINT = $("hint").textContent;

// "0-3,8" -> [0, 1, 2, 3, 8]
function ids(list) {
	const all = [];
	for (const part of (list || "").split(",").filter(Boolean)) {
		const [from, to] = part.split("-").map(Number);
		for (let i = from; i <= (to ?? from); i++) all.push(i);
	}
	return all;
}
const asked = c => [c.cpu_milli ? `${cores(c.cpu_milli)} CPU` : "", c.memory ? size(c.memory) : "", c.hugepages ? `${size(c.hugepages)} in huge pages` : ""]
	.filter(Boolean).join(", ") || "nothing";
const cores = milli => milli % 1000 ? `${milli}m` : String(milli / 1000);
const nameOf = c => `${c.namespace}/${c.pod}${c.container ? " " + c.container : ""}`;

const seen = { status: null, machine: null, decisions: null };
let hues = new Map(), nextHue = 0, turn = 0, sortBy = "namespace", descending = false;

// A container keeps its colour as long as it is there; those that come one after the other differ clearly.
function colour(mark, id) {
	if (!hues.has(id)) hues.set(id, nextHue++);
	mark.style.setProperty("--hue", (hues.get(id) * GOLDEN_ANGLE) % 360);
	mark.style.setProperty("--shade", SHADES[hues.get(id) % SHADES.length]);
}
function forgetHues(containers) {
	const there = new Set(containers.map(c => c.id));
	for (const id of hues.keys()) if (!there.has(id) && hues.size > 4096) hues.delete(id);
}

// Who has each CPU: {kind, text, ids}
function ownersOf(st) {
	const of = new Map(), set = (list, kind, text) => { for (const cpu of ids(list)) of.set(cpu, { kind, text, ids: [] }); };
	set(st.pool, "pool", "shared pool");
	set(st.held, "kept", "held");
	set(st.left, "kept", "a container is left on it");
	for (const share of st.claims || []) set(share.cpus, "kept", `claim ${share.namespace}/${share.claim}`);
	for (const c of st.containers) {
		if (!c.exclusive && !c.shares_in_pod) continue;
		for (const cpu of ids(c.cpus)) {
			const o = of.get(cpu);
			if (o && o.kind === "own") { o.text += `, ${nameOf(c)}`; o.ids.push(c.id); }
			else of.set(cpu, { kind: "own", text: nameOf(c), ids: [c.id] });
		}
	}
	for (const cpu of ids(st.reserved)) of.set(cpu, { kind: "reserved", text: "reserved for the system", ids: [] });
	return of;
}

function cpuMark(owner) {
	const mark = el("span", { className: `cpu ${owner.kind}` });
	if (owner.kind === "own") colour(mark, owner.ids[0]);
	return mark;
}
function drawCpu(cpu, owners) {
	const owner = owners.get(cpu) || { kind: "free", text: "free", ids: [] };
	const mark = cpuMark(owner);
	mark.title = `CPU ${cpu}: ${owner.text}`;
	mark.dataset.cpu = cpu;
	mark.dataset.of = owner.ids.join(" ");
	return mark;
}
function drawMemory(m) {
	const held = m.allocatable - m.free, fullness = m.allocatable ? held / m.allocatable : 0;
	const inner = el("span"), text = `${m.type}: ${size(held)} of ${size(m.allocatable)} held`;
	inner.style.width = `${(fullness * 100).toFixed(1)}%`;
	return el("div", null, el("div", { className: "bar", role: "img", "aria-label": text, title: text }, inner),
		el("div", { className: "amount" }, text));
}

function showDistances(from, machine) {
	const distances = from !== null ? machine.nodes.find(n => n.id === from).distances.split(" ") : [];
	$("drawing").classList.toggle("distances", from !== null);
	$("hint").textContent = from !== null ? `The numbers are the distances of NUMA node ${from}.` : HINT;
	for (const e of $("drawing").querySelectorAll(".node")) {
		e.classList.toggle("from", from !== null && Number(e.dataset.node) === from);
		e.querySelector(".distance").textContent = distances[machine.nodes.findIndex(n => n.id === Number(e.dataset.node))] || "";
	}
}
function drawNode(n, st, machine, owners) {
	const now = st.nodes.find(x => x.id === n.id) || { memory: [], cpus: 0, cpus_held: 0, cpus_reserved: 0 };
	const free = now.cpus - now.cpus_held - now.cpus_reserved;
	const words = `NUMA node ${n.id}, ${count(now.cpus, "CPU")}, ${free} free for containers` +
		(machine.has_distances ? `, distances ${n.distances.split(" ").join(", ")}` : "");
	const card = el("div", { className: "node", tabIndex: 0, role: "group", "aria-label": words },
		el("h3", null, el("span", null, machine.nodes.length > MANY_NODES ? `Node ${n.id}` : `NUMA node ${n.id}`),
			el("span", { className: "free" }, `${free} free`), el("span", { className: "distance" })),
		el("div", { className: "cores" }, ...n.cores.map(core =>
			el("span", { className: "core" }, ...ids(core.cpus).map(cpu => drawCpu(cpu, owners))))),
		...now.memory.filter(m => m.allocatable).map(drawMemory));
	if (!n.cores.length) card.querySelector(".cores").append(n.device_memory ? "a device's memory" : "memory alone");
	card.dataset.node = n.id;
	for (const event of ["mouseenter", "focus"]) card.addEventListener(event, () => showDistances(n.id, machine));
	for (const event of ["mouseleave", "blur"]) card.addEventListener(event, () => showDistances(null, machine));
	return card;
}
function drawMachine(st, machine) {
	const owners = ownersOf(st), sockets = new Map();
	const focused = document.activeElement?.dataset?.node;
	for (const n of machine.nodes) {
		const s = n.sockets ?? n.socket ?? "none";
		sockets.set(s, [...(sockets.get(s) || []), n]);
	}
	const grouped = sockets.size > 1 && sockets.size < machine.nodes.length;
	const draw = nodes => el("div", { className: "nodes" }, ...nodes.map(n => drawNode(n, st, machine, owners)));
	$("drawing").className = machine.nodes.length > MANY_NODES ? "many" : "";
	if (!grouped)
		fill($("drawing"), el("div", { className: "socket plain" }, draw(machine.nodes)));
	else
		fill($("drawing"), ...[...sockets].map(([s, nodes]) => el("div", { className: "socket" },
			el("h3", null, s === "none" ? "Without CPUs" : `${typeof s === "string" ? "Sockets" : "Socket"} ${s}`), draw(nodes))));
	if (focused !== undefined)
		$("drawing").querySelector(`.node[data-node="${Number(focused)}"]`)?.focus();
	drawLegend(st, owners);
	drawFragmentation(st);
}
// How far free CPUs lie apart; an older numafitd does not say it.
function drawFragmentation(st) {
	const f = st.fragmentation;
	$("fragmentation").hidden = !f;
	if (!f) return;
	const together = f.largest_cpus < f.possible_cpus ? ` (${f.possible_cpus} if they lay together)` : "";
	const apart = f.not_preferred ? ` ${count(f.not_preferred, "container")} with own CPUs ${f.not_preferred === 1 ? "is" : "are"} on too many NUMA nodes.` : "";
	$("fragmentation").textContent = `Fragmentation ${Number((f.ratio_milli / 10).toFixed(1))} %: ${count(f.free_cpus, "CPU")} ${f.free_cpus === 1 ? "is" : "are"} free, ` +
		`a container on one NUMA node can have ${f.largest_cpus} of them${together}. At most ${size(f.largest_memory)} of memory are free on one NUMA node.${apart}`;
}
function drawLegend(st, owners) {
	const kinds = new Set([...owners.values()].map(o => o.kind)), own = st.containers.filter(c => c.exclusive || c.shares_in_pod);
	const row = (owner, text) => el("li", null, cpuMark(owner), text);
	const rows = own.slice(0, LEGEND_MAX).map(c => row({ kind: "own", ids: [c.id] }, nameOf(c)));
	if (own.length > LEGEND_MAX) rows.push(el("li", null, `and ${own.length - LEGEND_MAX} more, each in a colour of its own`));
	for (const [kind, text] of [["pool", "shared pool"], ["reserved", "reserved for the system"], ["kept", "held"], ["free", "free"]])
		if (kinds.has(kind)) rows.push(row({ kind, ids: [] }, text));
	fill($("legend"), ...rows);
}
function light(id) {
	for (const e of $("drawing").querySelectorAll(".cpu"))
		e.classList.toggle("lit", id !== null && e.dataset.of.split(" ").includes(id));
}

const COLUMNS = [
	["namespace", "Namespace", "name", c => c.namespace],
	["pod", "Pod", "name", c => c.pod],
	["container", "Container", "name", c => c.container],
	["qos", "Class", "short", c => c.qos],
	["cpus", "CPUs", "list", c => c.exclusive || c.shares_in_pod ? c.cpus : "shared pool"],
	["mems", "Memory of", "short", c => c.mems],
	["cpu_milli", "Asks for", "short", asked],
];
function compare(a, b) {
	const x = a[sortBy] ?? "", y = b[sortBy] ?? "";
	const order = typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y), undefined, { numeric: true });
	return (descending ? -order : order) || nameOf(a).localeCompare(nameOf(b));
}
function drawColumns() {
	fill($("columns"), ...COLUMNS.map(([key, title]) => {
		const button = el("button", { type: "button" }, title);
		button.addEventListener("click", () => {
			descending = sortBy === key && !descending;
			sortBy = key;
			drawColumns();
			drawContainers(seen.status);
			$("columns").querySelector(`[data-key="${key}"] button`).focus();
		});
		const th = el("th", { role: "columnheader", scope: "col", "aria-sort": sortBy === key ? (descending ? "descending" : "ascending") : "none" }, button);
		th.dataset.key = key;
		return th;
	}));
}
function drawContainers(st) {
	if (!st) return;
	const wanted = $("filter").value.toLowerCase(), focused = document.activeElement?.dataset?.id;
	const words = c => COLUMNS.map(([, , , text]) => text(c)).join(" ").toLowerCase();
	const shown = st.containers.filter(c => words(c).includes(wanted)).sort(compare);
	$("nr-containers").textContent = shown.length === st.containers.length ? `(${shown.length})` : `(${shown.length} of ${st.containers.length})`;
	fill($("rows"), ...shown.map(c => {
		const tr = el("tr", { role: "row", tabIndex: 0 }, ...COLUMNS.map(([key, title, kind, text]) => {
			const cell = el("span", null, text(c));
			if (key === "pod" && (c.exclusive || c.shares_in_pod)) cell.prepend(cpuMark({ kind: "own", ids: [c.id] }));
			return el("td", { className: kind, role: "cell", "data-label": title }, cell);
		}));
		tr.dataset.id = c.id;
		for (const event of ["mouseenter", "focus"]) tr.addEventListener(event, () => light(c.id));
		for (const event of ["mouseleave", "blur"]) tr.addEventListener(event, () => light(null));
		return tr;
	}));
	if (!shown.length)
		fill($("rows"), el("tr", { role: "row" }, el("td", { role: "cell", colSpan: COLUMNS.length }, st.containers.length ? "No container has this in it." : "No container is placed.")));
	if (focused !== undefined) [...$("rows").children].find(tr => tr.dataset.id === focused)?.focus();
}

function reasonsOf(d) {
	if (!d.admitted) return d.why || `${d.reason}: ${d.message}`;
	const where = d.exclusive ? `CPUs ${d.cpus || "none"}` : "shared pool";
	const memory = d.mems ? `, memory of NUMA node${/[-,]/.test(d.mems) ? "s" : ""} ${d.mems}` : "";
	const rules = d.resources.map(r => !r.nodes_free ? `${r.resource}: no set of NUMA nodes has enough free`
		: `${r.resource} fits on ${count(r.nodes_free, "NUMA node")}` +
		  (r.nodes_all && r.nodes_all < r.nodes_free ? `, on ${r.nodes_all} if nothing else ran` : ""));
	return [where + memory, ...rules, d.message].filter(Boolean).join("; ");
}
function drawDecisions(doc) {
	const all = [...doc.decisions.filter(d => !d.admitted), ...doc.decisions.filter(d => d.admitted)];
	$("nr-decisions").textContent = doc.count > all.length ? `(the last ${all.length} of ${doc.count})` : `(${all.length})`;
	fill($("decided"), ...all.map(d => el("li", { className: d.admitted ? "admitted" : "refused" },
		el("span", { className: "verdict" }, d.admitted ? "admitted" : "refused"), " ",
		el("span", { className: "name" }, nameOf(d)), " ",
		el("span", { className: "when" }, `${new Date(d.time_ms).toLocaleTimeString()}, ${d.cause}, policy ${d.policy}`),
		el("p", { className: "why" }, reasonsOf(d)))));
	if (!all.length) fill($("decided"), el("li", null, "None since numafitd has started."));
}

function problemsOf(st) {
	const all = [];
	if (st.connection !== "ready") all.push(`The container runtime: ${st.connection}.`);
	if (st.journal) all.push(`The journal cannot be written, and containers are refused: ${st.journal}`);
	if (st.journal_writers) all.push(`Others than numafitd could have written the journal: ${st.journal_writers}`);
	if (st.config?.refused) all.push(`The config file is not in force: ${st.config.refused}`);
	if (st.config?.restart) all.push(`These settings wait for a restart: ${st.config.restart}`);
	if (st.apiserver?.unusable) all.push(`The API server: ${st.apiserver.unusable}`);
	for (const m of st.moves?.list || [])
		if (m.state === "moving") all.push(`${m.namespace}/${m.pod}/${m.container} is being moved to NUMA node ${m.to_nodes}`);
	if (st.shared_pool?.problem) all.push(`The shared pool: ${st.shared_pool.problem}`);
	return all;
}
function drawHead(st, machine) {
	const held = ids(st.held).length, problems = problemsOf(st);
	document.title = `numafit ${st.machine}`;
	$("machine").textContent = st.machine;
	$("summary").textContent = [count(machine.sockets, "socket"), count(machine.nodes.length, "NUMA node"), count(machine.cpus, "CPU"),
		`${held} held`, count(st.containers.length, "container"), `policy ${st.settings.topologyManagerPolicy}`, st.runtime || "no runtime",
		`numafitd ${st.version}`].join(" · ");
	$("problems").hidden = !problems.length;
	fill($("problems"), ...problems.map(p => el("li", null, p)));
}

// What the document at path is now; null: as before.
const texts = {};
async function changed(name) {
	const text = await fetchText(`/api/${name}`);
	if (texts[name] === text) return null;
	texts[name] = text;
	return seen[name] = JSON.parse(text);
}
// The status that is drawn, as text without what changes each time; null: none is.
let drawn = null;
async function refresh() {
	try {
		const machine = turn++ % MACHINE_EVERY ? null : await changed("machine");
		await changed("status");
		const decisions = await changed("decisions");
		const now = JSON.stringify({ ...seen.status, uptime_ms: 0 });
		if (machine || drawn !== now) {
			drawn = null;
			forgetHues(seen.status.containers);
			drawHead(seen.status, seen.machine);
			drawMachine(seen.status, seen.machine);
			drawContainers(seen.status);
			drawPageFields(seen.status);
			drawn = now;
		}
		if (decisions) drawDecisions(decisions);
		setState(true, "up to date");
		document.body.dataset.drawn = "yes";
	} catch (error) {
		setState(false, "numafitd does not answer; it is asked again each 2 s");
		turn = 0; // and all is drawn anew when it answers
		drawn = null;
		for (const name of Object.keys(texts)) delete texts[name];
	}
}
/* One field for each size of huge pages that the node has. */
function drawPageFields(st) {
	const sizes = new Set(st.nodes.flatMap(n => n.memory).filter(m => m.type !== "memory" && m.allocatable).map(m => m.type));
	for (const type of sizes)
		if (!$("question").elements[type])
			$("containers-asked").before(el("label", null, `${type} `, el("input", { name: type, pattern: "[0-9.]+[A-Za-z]*", size: 8, autocomplete: "off" })));
}
function partsOf(record) {
	return (record.parts || []).map(p => {
		const d = p.decision, cpus = d.exclusive ? `CPUs ${d.cpus}` : "the shared pool";
		return el("li", null, `${p.request.container || "container"}: ${cpus}` + (d.mems ? `, memory of NUMA node${/[-,]/.test(d.mems) ? "s" : ""} ${d.mems}` : ""));
	});
}
// What moves would make of the free CPUs: those of each NUMA node that changes, now and then.
function freeNowAndThen(moves, st) {
	const nodeOf = new Map(st.nodes.flatMap(n => n.threads.flatMap(t => ids(t.cpus)).map(cpu => [cpu, n.id])));
	const free = new Map(st.nodes.map(n => [n.id, n.cpus - n.cpus_held - n.cpus_reserved])), then = new Map(free);
	for (const m of moves.list) {
		for (const cpu of ids(m.from_cpus)) then.set(nodeOf.get(cpu), then.get(nodeOf.get(cpu)) + 1);
		for (const cpu of ids(m.to_cpus)) then.set(nodeOf.get(cpu), then.get(nodeOf.get(cpu)) - 1);
	}
	return [...free].filter(([id, n]) => then.get(id) !== n).map(([id, n]) => `NUMA node ${id}: ${n} free CPUs now, ${then.get(id)} then`);
}
function movesOf(moves, st) {
	return [el("p", { className: "verdict" }, `It would fit after ${count(moves.list.length, "move")} of running containers`),
		el("ol", { id: "moves" }, ...moves.list.map(m => el("li", null,
			`${m.namespace}/${m.pod}/${m.container}: CPUs ${m.from_cpus} to ${m.to_cpus}, ${size(m.memory)} of memory to NUMA node ${m.to_nodes}`))),
		el("ul", { id: "then" }, ...freeNowAndThen(moves, st).map(line => el("li", null, line)))];
}
function drawAnswer(answer) {
	const box = $("answer");
	if (answer.error) {
		box.className = "refused";
		fill(box, el("p", null, answer.error));
	} else if (answer.op === "refuse") {
		box.className = "refused";
		fill(box, el("p", { className: "verdict" }, "It would be refused"), el("p", null, answer.why || ""), answer.help ? el("p", null, answer.help) : "",
			...(answer.moves ? movesOf(answer.moves, seen.status) : []));
	} else {
		box.className = "fits";
		fill(box, el("p", { className: "verdict" }, "It would fit"), el("ul", null, ...partsOf(answer)));
	}
}
async function ask(event) {
	event.preventDefault();
	const query = new URLSearchParams(new FormData($("question")));
	$("ask").disabled = true;
	try {
		let answer = null;
		for (let i = 0; i < RETRIES && (!answer || answer.status === TOO_MANY); i++) {
			if (answer) await new Promise(wake => setTimeout(wake, RETRY_MS));
			answer = await fetch(`/api/whatif?${query}`, { cache: "no-store", signal: AbortSignal.timeout(LONG_PATIENCE_MS) });
		}
		drawAnswer(await answer.json());
	} catch (error) {
		drawAnswer({ error: "numafitd does not answer" });
	}
	$("ask").disabled = false;
	$("ask").focus();
}

drawColumns();
$("filter").addEventListener("input", () => drawContainers(seen.status));
$("question").addEventListener("submit", ask);
poll(refresh, EVERY_MS);
})();
