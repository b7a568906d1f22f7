import { Refusal } from 'svc/sdk'

type Fields = Readonly<Record<string, unknown>>

/** Steps that depend on others come after them, and stay in their order otherwise: here the order is the list. */
export function sortSteps(steps: readonly Fields[], warnings: string[]): readonly Fields[] {
  if (!steps.some((step) => dependencies(step).length > 0)) return steps
  const names = new Set(steps.map(({ name }) => name))
  const left = [...steps]
  const done = new Set<unknown>()
  const sorted: Fields[] = []
  while (left.length > 0) {
    const at = left.findIndex((step) => dependencies(step).every((name) => done.has(name) || !names.has(name)))
    const [next] = at < 0 ? [] : left.splice(at, 1)
    if (!next)
      throw new Refusal(
        'invalid_request',
        `depends_on: these steps wait for each other: ${left.map(({ name }) => String(name)).join(', ')}`,
      )
    done.add(next.name)
    sorted.push(next)
  }
  warnings.push('depends_on is left out: the steps run in the order of the list, and variables carry their outputs')
  return sorted
}

function dependencies({ depends_on: list }: Fields): readonly unknown[] {
  return Array.isArray(list) ? list : []
}
