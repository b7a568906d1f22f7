import type * as v from 'valibot'
import type { ChannelRegistry } from 'svc/channels'
import type { Configuration } from 'svc/internal'
import type { PluginContext, ServiceToken } from 'svc/sdk'
import type { Audit } from '../audit/contract.ts'
import type { Section, Settings } from './config.ts'
import { AdapterRegistry } from './connections/registry.ts'

export type HostContext = PluginContext<
  Settings & { readonly channels: v.InferOutput<typeof Section> },
  { audit: ServiceToken<Audit>; configuration: ServiceToken<Configuration> },
  {}
>

/** Everything of the plugin: loaded by `setup`, so that its code is no part of the file that every start evaluates. */
export function startHost(_ctx: HostContext): { readonly channels: ChannelRegistry } {
  const registry = new AdapterRegistry(async () => undefined)
  return { channels: registry }
}
