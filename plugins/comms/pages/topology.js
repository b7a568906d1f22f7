const SVG = 'http://www.w3.org/2000/svg'
const MAX_WIDTH = 640
const HEIGHT = 380
const RADIUS = 14

/** A drawing of the agents on a circle in the width that there is room for, each edge with its ends in words for those who do not see it. */
export function drawTopology({ nodes, edges }, room) {
  const width = Math.min(MAX_WIDTH, room)
  const places = new Map(nodes.map((node, index) => [node.id, placeOf(index, nodes.length, width)]))
  const names = new Map(nodes.map(({ id, name }) => [id, name]))
  const drawing = svg('svg', { viewBox: `0 0 ${width} ${HEIGHT}`, role: 'img', 'aria-label': inWords(edges, names) })
  drawing.append(arrowHead())
  for (const { from, to, kind } of edges) drawing.append(line(places.get(from), places.get(to), kind))
  for (const node of nodes) drawing.append(dot(node, places.get(node.id)))
  return drawing
}

function inWords(edges, names) {
  if (edges.length === 0) return 'No agent made another one or wrote to one.'
  return edges
    .map(({ from, to, kind }) =>
      kind === 'peer'
        ? `${names.get(from)} and ${names.get(to)} write to each other`
        : `${names.get(from)} made ${names.get(to)}`,
    )
    .join('. ')
}

function placeOf(index, count, width) {
  if (count === 1) return { x: width / 2, y: HEIGHT / 2 }
  const angle = (2 * Math.PI * index) / count - Math.PI / 2
  return {
    x: width / 2 + (width / 2 - 80) * Math.cos(angle),
    y: HEIGHT / 2 + (HEIGHT / 2 - 50) * Math.sin(angle),
  }
}

/** From the edge of one circle to that of the other. */
function line(start, end, kind) {
  const [dx, dy] = [end.x - start.x, end.y - start.y]
  const length = Math.hypot(dx, dy) || 1
  const gap = RADIUS + 4
  const attributes = {
    x1: start.x + (dx / length) * gap,
    y1: start.y + (dy / length) * gap,
    x2: end.x - (dx / length) * gap,
    y2: end.y - (dy / length) * gap,
  }
  return kind === 'peer'
    ? svg('line', { ...attributes, class: 'peer' })
    : svg('line', { ...attributes, 'marker-end': 'url(#arrow)' })
}

function dot({ name, state, model }, { x, y }) {
  const group = svg('g', { class: state === 'Running' ? 'running' : 'idle' })
  const title = svg('title')
  title.textContent = `${name}: ${state}, ${model}`
  const text = svg('text', { x, y: y + RADIUS + 16 })
  text.textContent = name.length > 24 ? `${name.slice(0, 23)}…` : name
  group.append(title, svg('circle', { cx: x, cy: y, r: RADIUS }), text)
  return group
}

function arrowHead() {
  const marker = svg('marker', { id: 'arrow', viewBox: '0 0 8 8', refX: 8, refY: 4, markerWidth: 8, markerHeight: 8 })
  marker.setAttribute('orient', 'auto')
  marker.append(svg('path', { d: 'M0 0 L8 4 L0 8 z' }))
  return marker
}

function svg(tag, attributes = {}) {
  const made = document.createElementNS(SVG, tag)
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value))
  return made
}
