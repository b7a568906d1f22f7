import { findNearest, suggest } from 'svc/internal'
import { omitUndefined, Refusal } from 'svc/sdk'
import type { MediaKind, ProviderDriver } from 'svc/providers'
import type { Connections } from './connection.ts'
import type { Inference, ProviderState } from './contract.ts'
import { variablesOf } from './keys.ts'
import type { Keys } from './keys.ts'

/** Every provider that can be named, and whether it can be used now. */
export function providerStates(connections: Connections, keys: Keys): readonly ProviderState[] {
  return connections.names().flatMap((name) => {
    const driver = connections.driver(name)?.driver
    if (!driver) return []
    const program = connections.program(name)
    const isOwnName = driver.name === name
    return [
      {
        name,
        title: isOwnName ? driver.title : name,
        authStatus: program ? programStatus(program) : keyStatus(name, driver, keys),
        ...omitUndefined({ lacks: program?.lacks }),
        envVar: isOwnName ? driver.envVar : undefined,
        baseUrl: connections.baseUrl(name),
        defaultModel: connections.section(name)?.default_model ?? driver.defaultModel,
      },
    ]
  })
}

/** Providers with a key, or without need of one, that declare a kind of media. */
export function usableMedia(
  connections: Connections,
  keys: Keys,
  kind: MediaKind,
): readonly { readonly provider: string; readonly model: string }[] {
  return connections.names().flatMap((name) => {
    const driver = connections.driver(name)?.driver
    const model = driver?.media?.[kind]?.model
    return driver && model !== undefined && keyStatus(name, driver, keys) !== 'missing'
      ? [{ provider: name, model }]
      : []
  })
}

const programStatus = ({ lacks }: { readonly lacks?: string | undefined }): ProviderState['authStatus'] =>
  lacks === undefined ? 'configured' : 'missing'

function keyStatus(name: string, driver: ProviderDriver, keys: Keys): ProviderState['authStatus'] {
  if (keys.source(name, variablesOf(driver))) return 'configured'
  return driver.envVar === undefined ? 'no_key_needed' : 'missing'
}

/** Throws `provider_not_found`, with the nearest name there is. */
export function requireProvider(inference: Inference, name: string): ProviderState {
  const states = inference.providers()
  const state = states.find((provider) => provider.name === name)
  if (state) return state
  const names = states.map((one) => one.name)
  throw new Refusal('provider_not_found', `Provider '${name}' not found${suggest(findNearest(name, names))}`)
}
