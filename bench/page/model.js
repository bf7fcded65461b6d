// Draws what quorum_bench measured. The tables that it writes are known by their names only where
// that makes a better choice of charts; any other table is drawn from its axes and metrics alone.
'use strict';

const data = JSON.parse(document.getElementById('data').textContent);

// Which metrics are shown at once, which are drawn as ratios as well. The others are folded.
const chosen = {
    latency: {shown: ['acquire_p50_us', 'acquire_p99_us'], ratios: ['acquire_p50_us']},
    throughput: {
        shown: ['pairs_per_second', 'acquire_p50_us', 'client_cpu_us_per_pair', 'server_cpu_us_per_pair'],
        ratios: ['pairs_per_second'],
    },
    handoff: {
        shown: ['handoffs_per_second', 'remote_p50_us', 'local_p50_us', 'wasted_commands_per_handoff',
            'longest_gap_ms', 'jain_index'],
        ratios: [],
    },
    faults: {shown: ['acquire_p50_us', 'acquire_p99_us'], ratios: ['acquire_p50_us', 'acquire_p99_us']},
    peers: {shown: ['pairs_per_second', 'acquire_p50_us', 'acquire_p99_us'], ratios: ['pairs_per_second']},
};
const shownOtherwise = 4;
// The axis whose values are drawn next to each other, in a colour each.
const sideAxes = ['side', 'peer', 'protocol'];
// A side has one colour in all charts.
const colours = new Map([['floor', 0], ['plain', 1], ['guarded', 2], ['fenced', 3],
    ['redlock, plain', 1], ['redlock, guarded', 2]]);
const coloursMax = 8;
const logarithmicFrom = 25; // the largest value over the smallest

// --- Small things ---------------------------------------------------------------------------------

const svgName = 'http://www.w3.org/2000/svg';
function fill(node, attributes, children) {
    for (const [name, value] of Object.entries(attributes || {})) {
        node.setAttribute(name, value);
    }
    node.append(...children.flat().filter((child) => child !== null && child !== undefined));
    return node;
}
const element = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const shape = (tag, attributes, ...children) => fill(document.createElementNS(svgName, tag), attributes, children);

let names = 0;
const freshName = (stem) => `${stem}-${++names}`;

const isNumber = (value) => typeof value === 'number' && Number.isFinite(value);
const distinct = (values) => [...new Set(values)];

function figure(value) {
    if (!isNumber(value)) {
        return '–';
    }
    const size = Math.abs(value);
    const digits = size >= 100 || Number.isInteger(value) ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3;
    return value.toLocaleString('en-GB', {maximumFractionDigits: size < 0.01 ? 5 : digits});
}
const range = (spread) => `${figure(spread.min)} to ${figure(spread.max)}`;
const hasFigure = (spread) => spread && isNumber(spread.median);

// "client_cpu_us_per_pair" is "client CPU per pair, µs".
const units = {us: 'µs', ms: 'ms', ns: 'ns'};
const spellings = {cpu: 'CPU', jain: 'Jain'};
function wording(name) {
    const words = name.split('_').map((word) => spellings[word] || word);
    const unit = words.find((word) => units[word]);
    const rest = words.filter((word) => word !== unit).join(' ');
    return unit ? `${rest}, ${units[unit]}` : rest;
}
const shown = (value) => typeof value === 'boolean' ? (value ? 'yes' : 'no')
    : isNumber(value) ? figure(value) : String(value);

// --- What a table is made of ----------------------------------------------------------------------

function layout(table) {
    const rows = table.rows || [];
    const axes = table.axes || Object.keys((rows[0] || {at: {}}).at);
    const numeric = (axis) => rows.every((row) => isNumber(row.at[axis]));
    let side = axes.find((axis) => sideAxes.includes(axis));
    if (!side && axes.length > 1 && !numeric(axes[axes.length - 1])) {
        side = axes[axes.length - 1];
    }
    const others = axes.filter((axis) => axis !== side);
    const along = others.length === 1 && numeric(others[0])
        && distinct(rows.map((row) => row.at[others[0]])).length > 2 ? others[0] : null;
    const place = (row) => others.map((axis) => isNumber(row.at[axis])
        ? `${axis} = ${figure(row.at[axis])}` : String(row.at[axis])).join(', ');
    const metrics = distinct(rows.flatMap((row) => Object.keys(row.metrics || {})));
    return {rows, axes, side, others, along, place, metrics};
}

function colourOf(name) {
    if (!colours.has(name)) {
        const used = new Set(colours.values());
        let free = 0;
        while (used.has(free)) {
            ++free;
        }
        colours.set(name, free);
    }
    return colours.get(name);
}

// What all ratios of a metric are taken to; null when it is not the same for all.
function commonBase(plan, metric) {
    const bases = distinct(plan.rows.map((row) => ((row.ratios || {})[metric] || {}).to).filter(Boolean));
    return bases.length === 1 ? bases[0] : null;
}

// The lines or dots of one chart: one series for each side, a point for each row.
function seriesOf(plan, metric, ratio) {
    const found = new Map();
    const tellBase = ratio && !commonBase(plan, metric);
    for (const row of plan.rows) {
        const spread = ((ratio ? row.ratios : row.metrics) || {})[metric];
        if (!hasFigure(spread)) {
            continue;
        }
        const side = plan.side ? String(row.at[plan.side]) : '';
        const name = tellBase && spread.to ? `${side} / ${spread.to}` : side;
        if (!found.has(name)) {
            found.set(name, {name, colour: colourOf(side), points: []});
        }
        found.get(name).points.push({
            x: plan.along ? row.at[plan.along] : plan.place(row),
            median: spread.median,
            min: isNumber(spread.min) ? spread.min : spread.median,
            max: isNumber(spread.max) ? spread.max : spread.median,
        });
    }
    if (plan.along) {
        found.forEach((series) => series.points.sort((a, b) => a.x - b.x));
    }
    return [...found.values()];
}
