import { element } from '../../kit/kit.js'
import { LOOKS, ranksOf, stepStates } from './step-view.js'

const SVG = 'http://www.w3.org/2000/svg'

/**
 * The steps of a run from top to bottom, those that run side by side beside each other. `chosen` is the index of the step
 * that is looked at, and `choose` takes that of one that is pressed. The list of steps says the same in words.
 */
export function runGraph(run, attempts, { chosen, choose }) {
  const states = stepStates(run, attempts)
  const nodes = run.steps.map((step, index) => nodeOf(step, states[index], index === chosen, () => choose(index)))
  const ranks = ranksOf(run.steps).map((indexes) =>
    element(
      'div',
      { className: 'rank' },
      indexes.map((index) => nodes[index]),
    ),
  )
  const edges = svg('svg', { 'aria-hidden': 'true' })
  const graph = element('div', { className: 'graph', role: 'group', 'aria-label': 'Graph of the steps' }, edges, ranks)
  // The first time when it has a place, and again when the screen turns.
  new ResizeObserver(() => drawEdges(edges, run.steps, nodes, states)).observe(graph)
  return graph
}

function nodeOf(step, { state, text }, isChosen, onclick) {
  const notes = [whoOf(step), noteOf(step)].filter(Boolean)
  return element(
    'button',
    {
      type: 'button',
      className: `node ${LOOKS[state] ?? ''}`,
      'data-focus': `node ${step.name}`,
      'aria-pressed': String(isChosen),
      'data-state': state,
      onclick,
    },
    element('strong', {}, step.name),
    notes.map((note) => element('span', { className: 'who' }, note)),
    element('span', { className: 'node-state' }, text),
  )
}
const whoOf = ({ type, mode, agent_name: name }) => (mode === 'collect' ? 'collects' : (name ?? type))
function noteOf({ mode, condition, max_iterations: most, until }) {
  if (mode === 'conditional') return `if ${condition}`
  return mode === 'loop' && `${most} rounds at most${until ? `, until ${until}` : ''}`
}

function drawEdges(place, steps, nodes, states) {
  place.setAttribute('width', place.parentElement.clientWidth)
  place.setAttribute('height', place.parentElement.clientHeight)
  const boxes = nodes.map(boxOf)
  const ranks = ranksOf(steps)
  const lines = ranks.flatMap((rank, at) =>
    rank.flatMap((from) =>
      (ranks[at + 1] ?? []).map((to) => {
        const hasRun = states[to].hasBegun && states[from].hasBegun
        return path(between(boxes[from], boxes[to]), hasRun ? 'run' : '')
      }),
    ),
  )
  const around = steps.flatMap(({ mode }, index) => {
    if (mode === 'loop') return [path(again(boxes[index]), states[index].hasBegun ? 'run' : '')]
    return mode === 'conditional' ? [path(past(boxes[index]), 'maybe')] : []
  })
  place.replaceChildren(arrowHead(), ...lines, ...around)
}

function boxOf({ offsetLeft: left, offsetTop: top, offsetWidth: width, offsetHeight: height }) {
  return { left, right: left + width, top, bottom: top + height, x: left + width / 2, y: top + height / 2 }
}
const between = ({ x, bottom }, to) => {
  const middle = (bottom + to.top) / 2
  return `M${x} ${bottom} C${x} ${middle} ${to.x} ${middle} ${to.x} ${to.top}`
}
const again = ({ right, y }) =>
  `M${right} ${y + 10} C${right + 26} ${y + 16} ${right + 26} ${y - 16} ${right} ${y - 10}`
/** Beside a step that may be left out. */
const past = ({ left, x, top, bottom }) => `M${x} ${top - 14} H${left - 10} V${bottom + 10} H${x}`

const path = (d, className) => svg('path', { d, class: className, 'marker-end': 'url(#arrow)' })
function arrowHead() {
  const marker = svg('marker', { id: 'arrow', viewBox: '0 0 8 8', refX: 8, refY: 4, markerWidth: 7, markerHeight: 7 })
  marker.setAttribute('orient', 'auto')
  marker.append(svg('path', { d: 'M0 0 L8 4 L0 8 z' }))
  return marker
}
function svg(tag, attributes = {}) {
  const made = document.createElementNS(SVG, tag)
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value))
  return made
}
