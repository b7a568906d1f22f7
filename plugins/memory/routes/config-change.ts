import type { Configuration } from 'svc/internal'
import type * as v from 'valibot'
import type { Audit } from '../../audit/contract.ts'
import type { ConfigChange, ConfigChanged, ConfigView } from '../schema.ts'

export interface ConfigChangeDeps {
  readonly configuration: Configuration
  readonly audit: Audit
}
/** The keys of `[plugins.memory]` that are shown under another name. */
const NAMES: Readonly<Record<string, string>> = {
  embedding_provider: 'embedding.provider',
  embedding_model: 'embedding.model',
}
const keyOf = (name: string): string => `plugins.memory.${NAMES[name] ?? name}`

/** Sets what differs from what holds. Throws `forbidden` for what only the file sets, before anything is written. */
export async function changeConfig(
  { configuration, audit }: ConfigChangeDeps,
  held: v.InferOutput<typeof ConfigView>,
  { proactive_memory: proactive = {}, ...rest }: v.InferOutput<typeof ConfigChange>,
): Promise<v.InferOutput<typeof ConfigChanged>> {
  const loaded: Readonly<Record<string, unknown>> = { ...held, ...held.proactive_memory }
  // What was set a moment ago may not have reached the plugin yet.
  const current = (name: string): unknown => configuration.shown(keyOf(name)) ?? loaded[name]
  const wanted = Object.entries({ ...rest, ...proactive }).filter(
    ([name, value]) => value !== undefined && JSON.stringify(value) !== JSON.stringify(current(name)),
  )
  const changes = wanted.map(([name, value]) => ({ key: keyOf(name), value }))
  for (const { key, value } of changes) await configuration.check(key, value)
  const overridden: Record<string, string> = {}
  for (const { key, value } of changes) {
    // Before the file: an untraceable change must not happen.
    await audit.write({
      event: 'config_change',
      details: `configuration: change of ${key} requested`,
      change: {
        before: { [key]: configuration.shown(key) },
        after: { [key]: configuration.shown(key, value) },
      },
    })
    await configuration.set(key, value)
    const source = configuration.sources().get(key)
    if (source !== undefined && !/config\.toml(:\d+)?$/.test(source)) overridden[key] = source
  }
  const now = <T extends object>(names: T): T =>
    Object.fromEntries(Object.keys(names).map((name) => [name, current(name)])) as T
  const { proactive_memory: own, ...others } = held
  return {
    config: { ...now(others), proactive_memory: now(own) },
    changed: changes.map(({ key }) => key),
    overridden,
  }
}
