import * as v from 'valibot'
import { definePlugin } from 'svc/sdk'
import { CollectProbes } from '../security/contract.ts'

export default definePlugin({
  name: 'peers',
  version: '1.0.0',
  config: v.object({}),
  setup({ hooks }) {
    hooks.on(CollectProbes, (probes) => [
      ...probes,
      { system: 'ofp_hmac_auth', run: async () => (await import('./probe.ts')).probe() },
    ])
    return {}
  },
})
