// Scales, marks and the two kinds of charts.

// --- Scales ---------------------------------------------------------------------------------------

function linearTicks(low, high, count) {
    const raw = (high - low) / count;
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= raw * 0.999);
    const ticks = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high * (1 + 1e-9); ++i) {
        ticks.push(Number((i * step).toPrecision(12)));
    }
    return ticks;
}

function logTicks(low, high) {
    const decades = Math.log10(high / low);
    const factors = decades < 2 ? [1, 2, 5] : decades < 3.5 ? [1, 3] : [1];
    const every = Math.ceil(decades / 6);
    const ticks = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); ++power) {
        for (const factor of factors) {
            const value = Number((factor * 10 ** power).toPrecision(12));
            if (value >= low * 0.999 && value <= high * 1.001 && power % every === 0) {
                ticks.push(value);
            }
        }
    }
    return ticks;
}

// Too far apart to be seen on a scale that starts at zero.
function isFarApart(points) {
    const least = Math.min(...points.map((point) => point.min));
    return least > 0 && Math.max(...points.map((point) => point.max)) / least > logarithmicFrom;
}

// From values to pixels.
function scaleFor(points, more, from, to, count) {
    const values = [...points.flatMap((point) => [point.min, point.max]), ...more];
    const most = Math.max(...values);
    const least = Math.min(...values);
    if (isFarApart(points)) {
        const low = least / 1.15;
        const high = most * 1.15;
        const at = (value) => from + (to - from) * Math.log(value / low) / Math.log(high / low);
        return {at, ticks: logTicks(low, high), logarithmic: true};
    }
    const low = Math.min(0, least);
    const high = most > low ? most + (most - low) * 0.06 : low + 1;
    return {
        at: (value) => from + (to - from) * (value - low) / (high - low),
        ticks: linearTicks(low, high, count),
        logarithmic: false,
    };
}

const widthOfLetter = 6.8;
const textWidth = (text) => text.length * widthOfLetter;
const cut = (text, width) => textWidth(text) <= width ? text
    : `${text.slice(0, Math.floor(width / widthOfLetter) - 1)}…`;

// --- Marks ----------------------------------------------------------------------------------------

// Each colour has a form of its own: the charts can be read in grey.
const forms = [
    (x, y) => shape('circle', {cx: x, cy: y, r: 4}),
    (x, y) => shape('rect', {x: x - 3.6, y: y - 3.6, width: 7.2, height: 7.2}),
    (x, y) => shape('path', {d: `M${x},${y - 5}l5,8.5h-10z`}),
    (x, y) => shape('path', {d: `M${x},${y - 5.2}l5.2,5.2l-5.2,5.2l-5.2,-5.2z`}),
];
const dashes = ['none', 'none', '7 3', '2 3'];
function mark(series, x, y) {
    const drawn = forms[series.colour % forms.length](x, y);
    drawn.setAttribute('class', 'full');
    return drawn;
}
const tint = (series) => `c${series.colour % coloursMax}`;
const dash = (series) => dashes[series.colour % dashes.length];

function legend(all) {
    return element('ul', {class: 'legend'}, all.map((series) => element('li', {class: tint(series)},
        shape('svg', {viewBox: '0 0 34 14', 'aria-hidden': 'true'},
            shape('line', {x1: 0, x2: 34, y1: 7, y2: 7, class: 'ink', 'stroke-width': 2, 'stroke-dasharray': dash(series)}),
            mark(series, 17, 7)),
        element('span', {}, series.name))));
}

// --- Charts: each draws into an svg of the given width and tells where its stops are ----------------

function drawLines(svg, width, all, plan, ratio) {
    const points = all.flatMap((series) => series.points);
    const xs = distinct(points.map((point) => point.x)).sort((a, b) => a - b);
    const height = 270;
    const bottom = height - 40;
    const y = scaleFor(points, ratio ? [1] : [], bottom, 10, 5);
    const left = 12 + Math.max(...y.ticks.map((tick) => textWidth(figure(tick))));
    const logarithmic = xs[0] > 0 && xs[xs.length - 1] / xs[0] >= 16;
    const position = logarithmic ? Math.log : Number;
    const [first, last] = [position(xs[0]), position(xs[xs.length - 1])];
    const x = (value) => left + 12 + (width - left - 36) * (position(value) - first) / (last - first || 1);
    svg.setAttribute('viewBox', `0 0 ${width} ${height}`);
    for (const tick of y.ticks) {
        svg.append(
            shape('line', {x1: left, x2: width - 6, y1: y.at(tick), y2: y.at(tick), class: 'grid'}),
            shape('text', {x: left - 6, y: y.at(tick) + 4, 'text-anchor': 'end'}, figure(tick)));
    }
    let free = -Infinity;
    for (const value of xs) {
        const half = textWidth(figure(value)) / 2;
        if (x(value) - half > free) {
            svg.append(shape('text', {x: x(value), y: bottom + 18, 'text-anchor': 'middle'}, figure(value)));
            free = x(value) + half + 6;
        }
    }
    svg.append(shape('text', {x: (left + width) / 2, y: height - 4, 'text-anchor': 'middle'}, plan.along));
    if (ratio) {
        svg.append(shape('line', {x1: left, x2: width - 6, y1: y.at(1), y2: y.at(1), class: 'one'}));
    }
    for (const series of all) {
        const group = shape('g', {class: tint(series)});
        const up = series.points.map((point) => `${x(point.x)},${y.at(point.max)}`);
        const down = series.points.map((point) => `${x(point.x)},${y.at(point.min)}`).reverse();
        group.append(
            shape('polygon', {points: [...up, ...down].join(' '), class: 'band full'}),
            shape('polyline', {
                points: series.points.map((point) => `${x(point.x)},${y.at(point.median)}`).join(' '),
                class: 'line ink', 'stroke-dasharray': dash(series),
            }),
            ...series.points.map((point) => mark(series, x(point.x), y.at(point.median))));
        svg.append(group);
    }
    return xs.map((value) => ({value, x: x(value), y: 10, x2: x(value), y2: bottom}));
}

function drawDots(svg, width, all, plan, ratio) {
    const points = all.flatMap((series) => series.points);
    const places = distinct(points.map((point) => point.x));
    const right = width - 14 - Math.max(...points.map((point) => textWidth(figure(point.median))));
    const x = scaleFor(points, ratio ? [1] : [], 8, right, Math.max(2, Math.floor(width / 75)));
    const stops = [];
    const marks = [];
    let y = 2;
    for (const place of places) {
        const top = y;
        if (place) {
            marks.push(shape('text', {x: 8, y: y + 14, class: 'group'}, cut(place, width - 16)));
            y += 20;
        }
        for (const series of all) {
            const point = series.points.find((one) => one.x === place);
            if (!point) {
                continue;
            }
            const middle = y + 8;
            const group = shape('g', {class: tint(series)});
            if (!x.logarithmic) {
                group.append(shape('line', {x1: x.at(0), x2: x.at(point.median), y1: middle, y2: middle, class: 'stem ink'}));
            }
            group.append(
                shape('line', {x1: x.at(point.min), x2: x.at(point.max), y1: middle, y2: middle, class: 'reach ink'}),
                shape('path', {
                    d: `M${x.at(point.min)},${middle - 4}v8M${x.at(point.max)},${middle - 4}v8`, class: 'reach ink',
                }),
                mark(series, x.at(point.median), middle));
            marks.push(group, shape('text', {x: width - 4, y: middle + 4, 'text-anchor': 'end'}, figure(point.median)));
            y += 17;
        }
        stops.push({value: place, x: 2, y: top, x2: 2, y2: y});
        y += 6;
    }
    svg.setAttribute('viewBox', `0 0 ${width} ${y + 20}`);
    let free = -Infinity;
    for (const tick of x.ticks) {
        svg.append(shape('line', {x1: x.at(tick), x2: x.at(tick), y1: 0, y2: y, class: 'grid'}));
        const half = textWidth(figure(tick)) / 2;
        const at = Math.max(x.at(tick), half);
        if (at - half > free) {
            svg.append(shape('text', {x: at, y: y + 15, 'text-anchor': 'middle'}, figure(tick)));
            free = at + half + 6;
        }
    }
    if (ratio) {
        svg.append(shape('line', {x1: x.at(1), x2: x.at(1), y1: 0, y2: y, class: 'one'}));
    }
    svg.append(...marks);
    return stops;
}
