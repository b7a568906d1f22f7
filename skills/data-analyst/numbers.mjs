export const sum = (values) => {
  // Adds up what rounding loses (Neumaier).
  let total = 0
  let lost = 0
  for (const value of values) {
    const next = total + value
    lost += Math.abs(total) >= Math.abs(value) ? total - next + value : value - next + total
    total = next
  }
  return total + lost
}
export const mean = (values) => sum(values) / values.length
/** Of a sample: divided by n - 1. `null` for fewer than two values. */
export function deviation(values) {
  if (values.length < 2) return null
  const middle = mean(values)
  return Math.sqrt(sum(values.map((value) => (value - middle) ** 2)) / (values.length - 1))
}
/** Of sorted values, between the two nearest ones (type 7, as in R, NumPy and Excel). */
export function quantile(sorted, share) {
  const at = (sorted.length - 1) * share
  const low = sorted[Math.floor(at)]
  return low + (sorted[Math.ceil(at)] - low) * (at % 1)
}
export const sortNumbers = (values) => Float64Array.from(values).sort()
export const smallest = (values) => values.reduce((one, other) => (other < one ? other : one))
export const largest = (values) => values.reduce((one, other) => (other > one ? other : one))

/** Enough digits to tell values apart, none that rounding made. */
export const round = (value) =>
  typeof value === 'number' && Number.isFinite(value) ? Number(value.toPrecision(10)) : null

/** `null` when one of them is constant. */
export function pearson(ones, others) {
  const [a, b] = [mean(ones), mean(others)]
  const top = sum(ones.map((value, at) => (value - a) * (others[at] - b)))
  const bottom = Math.sqrt(sum(ones.map((value) => (value - a) ** 2)) * sum(others.map((value) => (value - b) ** 2)))
  return bottom === 0 ? null : top / bottom
}
/** Equal values share the mean of their ranks. */
export function ranks(values) {
  const order = values.map((value, at) => [value, at]).toSorted(([one], [other]) => one - other)
  const found = Array.from({ length: values.length })
  for (let from = 0; from < order.length;) {
    let to = from
    while (to < order.length && order[to][0] === order[from][0]) to++
    for (let at = from; at < to; at++) found[order[at][1]] = (from + to + 1) / 2
    from = to
  }
  return found
}
