import * as v from 'valibot'
import type { OfflineDeps } from 'svc/internal'
import { MemberStore } from './store.ts'

const Config = v.looseObject({ plugins: v.looseObject({ disabled: v.array(v.string()) }) })
const Options = v.object({
  /** Where all have to work with the same, and what a daemon of this home would work with. */
  key: v.string(),
  value: v.string(),
  /** Digests of `[budget]` of this home, as the others make theirs. */
  budget: v.pipe(v.string(), v.parseJson(), v.record(v.string(), v.string())),
})
const PLUGIN = 'plugin '

export interface JoinFindings {
  /** Why the daemon would not start. */
  readonly problem?: string
  /** How it would differ, a sentence without its stop each. */
  readonly differences: readonly string[]
}

/** How a daemon of a home that is to join would differ from those on the database. */
export async function checkJoin({ config, db, log }: OfflineDeps, options: object): Promise<JoinFindings> {
  const store = db && new MemberStore(db, log)
  if (!store || !(await store.isThere())) return { differences: [] }
  const { key, value, budget } = v.parse(Options, options)
  const [other] = await store.disagreeing('', key, value)
  if (other)
    return { problem: `${key} is "${value}" in this home and "${other.value}" in ${other.name}`, differences: [] }
  const { disabled } = v.parse(Config, config).plugins
  const differences: string[] = []
  for (const { id, name } of await store.members()) {
    const keys = (await store.keys(id)) ?? {}
    // It has not said yet how it is configured.
    if (Object.keys(keys).length === 0) continue
    const isDisabled = (plugin: string): boolean => keys[`${PLUGIN}${plugin}`]?.endsWith(' disabled') === true
    const theirs = Object.keys(keys).flatMap((one) => (one.startsWith(PLUGIN) ? one.slice(PLUGIN.length) : []))
    for (const plugin of disabled)
      if (!isDisabled(plugin)) differences.push(`plugin "${plugin}" is disabled in this home, and not in ${name}`)
    for (const plugin of theirs)
      if (isDisabled(plugin) && !disabled.includes(plugin))
        differences.push(`plugin "${plugin}" is disabled in ${name}, and not in this home`)
    for (const one of differingBudget(keys, budget))
      differences.push(`${one} is another one in ${name}: the higher limit counts`)
  }
  return { differences }
}

type Digests = Readonly<Record<string, string>>
function differingBudget(theirs: Digests, own: Digests): readonly string[] {
  const all = new Set([...Object.keys(theirs).filter((key) => key.startsWith('budget.')), ...Object.keys(own)])
  return [...all].filter((key) => theirs[key] !== own[key]).toSorted()
}
