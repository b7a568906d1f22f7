import { openBuiltin, openCompatible } from '../support/provider-stage.ts'
import type { Offer, ProviderStage } from './provider.ts'

/** Every driver with the stage it is tested on; one more driver is one more row. `network`: there is a provider behind it. */
export const drivers: readonly { readonly name: string; readonly open: () => Promise<ProviderStage>; readonly network: boolean; readonly offers?: readonly Offer[] }[] = [
  { name: 'builtin', open: openBuiltin, network: false, offers: ['models'] },
  { name: 'openai-compatible', open: openCompatible, network: true, offers: ['models'] },
]
