// The page around the charts: sections, tables, targets, and what happens at a chart.

// --- A chart with its title, its description and its readout ----------------------------------------

const tip = document.getElementById('tip');

function showTip(svg, title, all, stop) {
    const lines = all.flatMap((series) => series.points
        .filter((point) => point.x === stop.value)
        .map((point) => element('span', {}, `${series.name ? `${series.name}: ` : ''}${figure(point.median)} (${range(point)})`)));
    tip.replaceChildren(element('b', {}, [title, shown(stop.value)].filter(Boolean).join(', ')), ...lines);
    tip.hidden = false;
    const box = svg.getBoundingClientRect();
    const scale = box.width / svg.viewBox.baseVal.width;
    const wanted = box.left + window.scrollX + stop.x * scale + 12;
    const room = document.documentElement.clientWidth - tip.offsetWidth - 8;
    tip.style.left = `${Math.max(4, Math.min(wanted, room))}px`;
    tip.style.top = `${box.top + window.scrollY + stop.y * scale - tip.offsetHeight - 6}px`;
}

// One for each chart: draws it for a column on paper (true), or as it was on the screen (false).
const printed = [];
const paperWidth = 340;

function chart(plan, metric, ratio) {
    const all = seriesOf(plan, metric, ratio);
    if (all.length === 0) {
        return null;
    }
    const values = all.flatMap((series) => series.points.map((point) => point.median));
    const base = ratio ? commonBase(plan, metric) : null;
    const title = (ratio ? `${wording(metric).replace(/, .*/, '')}, ratio${base ? ` to ${base}` : ''}` : wording(metric))
        + (isFarApart(all.flatMap((series) => series.points)) ? ' (logarithmic)' : '');
    const [titleId, textId] = [freshName('title'), freshName('text')];
    const described = `Medians from ${figure(Math.min(...values))} to ${figure(Math.max(...values))}`
        + `${plan.along ? ` against ${plan.along}` : ''}`
        + `${plan.side ? `, for ${all.map((series) => series.name).join(', ')}` : ''}.`
        + ' Arrow keys read the figures out; the table below has all of them.';
    const svg = shape('svg', {role: 'img', tabindex: 0, 'aria-labelledby': titleId, 'aria-describedby': textId});
    let stops = [];
    let current = -1;
    let drawn = 0;
    const cursor = shape('line', {class: 'at', visibility: 'hidden'});
    function go(index) {
        current = Math.max(0, Math.min(index, stops.length - 1));
        const stop = stops[current];
        fill(cursor, {x1: stop.x, x2: stop.x2, y1: stop.y, y2: stop.y2, visibility: 'visible'}, []);
        showTip(svg, title, all, stop);
    }
    function leave() {
        current = -1;
        cursor.setAttribute('visibility', 'hidden');
        tip.hidden = true;
    }
    function draw(width) {
        drawn = width;
        svg.replaceChildren(shape('title', {id: titleId}, title), shape('desc', {id: textId}, described));
        stops = (plan.along ? drawLines : drawDots)(svg, width, all, plan, ratio);
        svg.append(cursor);
    }
    svg.addEventListener('pointermove', (event) => {
        const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
        const distance = (stop) => plan.along ? Math.abs(stop.x - point.x)
            : Math.abs((stop.y + stop.y2) / 2 - point.y);
        go(stops.reduce((best, stop, i) => distance(stop) < distance(stops[best]) ? i : best, 0));
    });
    svg.addEventListener('pointerleave', leave);
    svg.addEventListener('blur', leave);
    svg.addEventListener('keydown', (event) => {
        const step = {ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1}[event.key];
        if (step) {
            go(current + step);
            event.preventDefault();
        } else if (event.key === 'Escape') {
            leave();
        }
    });
    draw(420);
    let onScreen = drawn;
    printed.push((onPaper) => {
        if (onPaper) {
            onScreen = drawn;
        }
        draw(onPaper ? paperWidth : onScreen);
    });
    // Text keeps its size: the drawing follows the width that there is.
    new ResizeObserver(([entry]) => {
        const width = Math.round(entry.contentRect.width);
        if (width > 0 && Math.abs(width - drawn) > 1) {
            requestAnimationFrame(() => draw(width));
            leave();
        }
    }).observe(svg);
    return element('figure', {}, element('h3', {'aria-hidden': 'true'}, title), ratio && !base ? legend(all) : null, svg);
}

// --- Tables ---------------------------------------------------------------------------------------

function scrolled(name, table) {
    return element('div', {class: 'scroll', role: 'region', tabindex: 0, 'aria-label': name}, table);
}

function cellOf(row, metric) {
    const spread = row.metrics[metric];
    if (!hasFigure(spread)) {
        return element('td', {}, '–');
    }
    const ratio = (row.ratios || {})[metric];
    return element('td', {title: spread.rounds ? `rounds: ${spread.rounds.map(figure).join('; ')}` : ''},
        figure(spread.median), spread.min === spread.max ? null : element('small', {}, range(spread)),
        hasFigure(ratio) ? element('small', {}, `${figure(ratio.median)} × ${ratio.to} (${range(ratio)})`) : null);
}

function figuresOf(table, plan) {
    const head = [...plan.axes.map((axis) => element('th', {scope: 'col', class: 'word'}, axis)),
        ...plan.metrics.map((metric) => element('th', {scope: 'col'}, wording(metric)))];
    const body = plan.rows.map((row) => element('tr', {},
        plan.axes.map((axis) => element('th', {scope: 'row'}, shown(row.at[axis]))),
        plan.metrics.map((metric) => cellOf(row, metric))));
    return scrolled(`Figures: ${table.title}`, element('table', {},
        element('caption', {}, 'Medians of the rounds, smallest to largest, and ratios taken round by round'),
        element('thead', {}, element('tr', {}, head)),
        element('tbody', {}, body)));
}

function folded(summary, ...children) {
    return element('details', {}, element('summary', {}, summary), ...children);
}

function facts(object) {
    return element('dl', {}, Object.entries(object).flatMap(([name, value]) => [
        element('dt', {}, name.replace(/_/g, ' ')),
        element('dd', {}, Array.isArray(value)
            ? distinct(value.map(shown)).map((one) => {
                const times = value.filter((other) => shown(other) === one).length;
                return times > 1 ? `${one} (${times} times)` : one;
            }).join(', ')
            : value && typeof value === 'object' ? facts(value) : shown(value ?? '–')),
    ]));
}

// --- Targets --------------------------------------------------------------------------------------

// "<= 1.15 x floor": what is allowed is below the first number.
function boundOf(target) {
    const found = /^\s*([<>])=?\s*(-?[\d.,]*\d)/.exec(target);
    return found ? {below: found[1] === '<', value: Number(found[2].replace(/,/g, ''))} : null;
}

const signs = (text) => text.replace(/<=/g, '≤').replace(/>=/g, '≥').replace(/ x /g, ' × ');

function targetBar(target) {
    const bound = boundOf(String(target.target));
    if (!bound || !isNumber(target.measured)) {
        return null;
    }
    const [min, max] = [target.min ?? target.measured, target.max ?? target.measured];
    const end = Math.max(bound.value, max) * 1.2 || 1;
    const x = (value) => 2 + 156 * Math.max(0, value) / end;
    const [from, to] = bound.below ? [0, bound.value] : [bound.value, end];
    return shape('svg', {viewBox: '0 0 160 26', role: 'img',
        'aria-label': `${figure(target.measured)} measured, ${bound.below ? 'at most' : 'at least'} ${figure(bound.value)} wanted`},
        shape('rect', {x: x(from), width: x(to) - x(from), y: 2, height: 22, class: 'allowed'}),
        shape('g', {class: target.reached ? 'good' : 'bad'},
            shape('rect', {x: x(0), width: x(target.measured) - x(0), y: 9, height: 8, class: 'full', opacity: .75}),
            shape('path', {d: `M${x(min)},13H${x(max)}M${x(min)},9v8M${x(max)},9v8`, class: 'at'})),
        shape('line', {x1: x(bound.value), x2: x(bound.value), y1: 1, y2: 25, class: 'bound'}));
}

function verdict(target) {
    if (typeof target.reached !== 'boolean') {
        return element('span', {}, 'not measured');
    }
    return target.reached ? element('span', {class: 'good'}, '✓ reached') : element('span', {class: 'bad'}, '✗ missed');
}

function targetsSection(targets) {
    const known = targets.filter((target) => typeof target.reached === 'boolean');
    const reached = known.filter((target) => target.reached).length;
    const head = ['what', 'target', 'measured', '', ''].map((name, i) => element('th', {scope: 'col', class: 'word'},
        name || element('span', {}, i === 3 ? 'verdict' : 'measured against the bound')));
    return ['targets', 'Targets', element('p', {class: 'note'},
        `${reached} of ${known.length} reached. Bars start at zero; the shaded part is allowed, the line is its bound, `
        + 'the whisker the smallest and the largest round.'),
    element('table', {class: 'targets'},
        element('thead', {}, element('tr', {}, head)),
        element('tbody', {}, targets.map((target) => element('tr', {},
            element('th', {scope: 'row'}, target.what),
            element('td', {class: 'word'}, signs(String(target.target))),
            element('td', {class: 'word measured'}, figure(target.measured),
                isNumber(target.min) && isNumber(target.max) ? element('small', {}, range(target)) : null),
            element('td', {class: 'word'}, verdict(target)),
            element('td', {}, targetBar(target))))))];
}

// --- The sections ---------------------------------------------------------------------------------

function tableSection(table) {
    const plan = layout(table);
    const wishes = chosen[table.id] || {};
    const first = (wishes.shown || []).filter((metric) => plan.metrics.includes(metric));
    const shownMetrics = first.length > 0 ? first : plan.metrics.slice(0, shownOtherwise);
    const ratios = wishes.ratios
        || plan.metrics.filter((metric) => seriesOf(plan, metric, true).length > 0).slice(0, 1);
    const charts = [...shownMetrics.map((metric) => chart(plan, metric, false)),
        ...ratios.map((metric) => chart(plan, metric, true))].filter(Boolean);
    const others = plan.metrics.filter((metric) => !shownMetrics.includes(metric))
        .map((metric) => chart(plan, metric, false)).filter(Boolean);
    const sides = plan.side ? distinct(plan.rows.map((row) => String(row.at[plan.side]))) : [];
    return [table.id, table.title || table.id,
        table.note ? element('p', {class: 'note'}, table.note) : null,
        sides.length > 0 ? legend(sides.map((name) => ({name, colour: colourOf(name)}))) : null,
        charts.length > 0 ? element('div', {class: 'charts'}, charts) : element('p', {}, 'Nothing was measured.'),
        others.length > 0 ? folded(`More charts (${others.length})`, element('div', {class: 'charts'}, others)) : null,
        plan.rows.length > 0 ? folded('The figures', figuresOf(table, plan)) : null,
        table.settings ? folded('Settings of this table', facts(table.settings)) : null];
}

function report() {
    const known = ['redlock', 'when', 'machine', 'settings', 'quick', 'tables', 'targets', 'failures'];
    const tables = data.tables || [];
    const sections = [
        ...(data.targets && data.targets.length > 0 ? [targetsSection(data.targets)] : []),
        ...tables.map(tableSection),
        ['machine', 'Machine and settings', facts(data.machine || {}), facts(data.settings || {}),
            ...Object.entries(data).filter(([name]) => !known.includes(name)).map(([name, value]) => facts({[name]: value}))],
    ];
    const failures = data.failures || [];
    document.getElementById('about').textContent =
        [`redlock ${data.redlock || ''}`, data.when, (data.machine || {}).cpu].filter(Boolean).join(' · ');
    const main = document.getElementById('report');
    if (data.quick) {
        main.append(element('p', {class: 'warning'}, 'A quick run: few and short rounds. Do not quote these figures.'));
    }
    if (failures.length > 0) {
        main.append(element('div', {class: 'warning'}, 'Something went wrong in this run:',
            element('ul', {}, failures.map((failure) => element('li', {}, typeof failure === 'string' ? failure : JSON.stringify(failure))))));
    }
    for (const [id, title, ...content] of sections) {
        const heading = freshName('heading');
        main.append(fill(element('section', {id, 'aria-labelledby': heading}), {}, [element('h2', {id: heading}, title), ...content]));
        document.getElementById('contents').append(element('li', {}, element('a', {href: `#${id}`}, title)));
    }
}

// Paper has nothing to unfold, and tells nobody how wide it is.
let opened = [];
window.addEventListener('beforeprint', () => {
    opened = [...document.querySelectorAll('details:not([open])')];
    opened.forEach((details) => details.setAttribute('open', ''));
    printed.forEach((redraw) => redraw(true));
});
window.addEventListener('afterprint', () => {
    opened.forEach((details) => details.removeAttribute('open'));
    printed.forEach((redraw) => redraw(false));
});

document.getElementById('save').addEventListener('click', () => {
    const link = element('a', {
        href: URL.createObjectURL(new Blob([JSON.stringify(data, null, 2)], {type: 'application/json'})),
        download: 'quorum_bench.json',
    });
    link.click();
    URL.revokeObjectURL(link.href);
});

report();
