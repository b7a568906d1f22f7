/** The element of the page with this id. */
export const byId = (id) => document.getElementById(id)

/**
 * A new element. A function is a listener, such as `onclick`; `true` is an attribute without a value, and what is absent
 * or `false` is left out. Children are elements and texts, never markup: names and errors are data.
 */
export function element(tag, properties = {}, ...children) {
  const { className, ...attributes } = properties
  const made = document.createElement(tag)
  if (className) made.className = className
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') made.addEventListener(name.slice(2), value)
    else if (value !== undefined && value !== null && value !== false)
      made.setAttribute(name, value === true ? '' : value)
  }
  made.append(...children.flat(Infinity).filter((child) => child !== undefined && child !== null && child !== false))
  return made
}

/** Shows a text in an element, given itself or by its id, or hides it when there is none. */
export function show(place, text) {
  const found = typeof place === 'string' ? byId(place) : place
  found.textContent = text ?? ''
  found.hidden = !text
}

/** Terms and their values, those without a value left out. */
export function facts(rows) {
  return rows
    .filter(([, value]) => value)
    .flatMap(([term, value]) => [element('dt', {}, term), element('dd', {}, value)])
}

/** Runs the work with the button switched off, so that a second click does nothing. */
export async function whileBusy(button, label, work) {
  const before = button.textContent
  button.disabled = true
  button.textContent = label
  try {
    return await work()
  } finally {
    button.disabled = false
    button.textContent = before
  }
}

/**
 * Replaces the children of an element, unless they would look the same: what is being pressed, read or selected stays. The
 * focus stays on what has the same `data-focus`, and a `details` with the same `data-open` stays open.
 */
export function replace(place, ...children) {
  const focused = place.contains(document.activeElement) ? document.activeElement.dataset.focus : undefined
  const known = new Map([...place.querySelectorAll('details[data-open]')].map((one) => [one.dataset.open, one.open]))
  const next = place.cloneNode(false)
  next.append(...children.flat(Infinity).filter(Boolean))
  for (const one of next.querySelectorAll('details[data-open]')) one.open = known.get(one.dataset.open) ?? one.open
  if (next.isEqualNode(place)) return
  place.replaceChildren(...next.childNodes)
  if (focused !== undefined) focusOn(focused, place)
}

/** Focuses the element with this `data-focus`, if there is one. What is in view stays there. */
export function focusOn(name, place = document) {
  place.querySelector(`[data-focus="${CSS.escape(name)}"]`)?.focus({ preventScroll: true })
}

/** A time of the API as people read it, with the exact one as its title. */
export function time(iso) {
  const date = new Date(iso)
  const isToday = date.toDateString() === new Date().toDateString()
  const options = isToday ? { timeStyle: 'medium' } : { dateStyle: 'medium', timeStyle: 'short' }
  return element('time', { datetime: iso, title: iso }, date.toLocaleString(undefined, options))
}
