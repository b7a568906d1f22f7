/**
 * Keeps what these fields hold in the query of the address, by their ids: the page can be sent to somebody as it is. What a
 * field holds at first is left out.
 */
export function keepInAddress(...fields) {
  const given = new URLSearchParams(location.search)
  for (const field of fields) {
    const initial = valueOf(field)
    if (given.has(field.id)) fill(field, given.get(field.id))
    field.addEventListener(field.type === 'search' || field.type === 'text' ? 'input' : 'change', () => {
      const url = new URL(location.href)
      const value = valueOf(field)
      if (value === initial) url.searchParams.delete(field.id)
      else url.searchParams.set(field.id, value)
      history.replaceState(history.state, '', url)
    })
  }
}

const valueOf = (field) => (field.type === 'checkbox' ? (field.checked ? 'yes' : 'no') : field.value)

function fill(field, value) {
  if (field.type === 'checkbox') field.checked = value === 'yes'
  // The choices of some come with the data.
  else if (field instanceof HTMLSelectElement && ![...field.options].some((option) => option.value === value))
    field.add(new Option(value, value, false, true))
  else field.value = value
}
