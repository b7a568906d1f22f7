import { enforced } from 'svc/internal'
import { definePlugin } from 'svc/sdk'
import * as v from 'valibot'
import { CollectProbes } from '../security/contract.ts'
import { Screening } from './contract.ts'

export default definePlugin({
  name: 'screening',
  version: '1.0.0',
  config: v.object({}),
  provides: { screening: Screening },
  setup({ hooks }) {
    const screening: Screening = {
      async screen(text) {
        // The rules are imported with the first text.
        const result = (await import('./screen.ts')).screen(text)
        if (result.level === 'critical' || result.level === 'warning') enforced('prompt_injection_scanning')
        return result
      },
      fold: async (text) => (await import('./normal.ts')).normalise(text).text,
    }
    hooks.on(CollectProbes, (probes) => [
      ...probes,
      {
        system: 'prompt_injection_scanning',
        run: async (signal) => (await import('./probe.ts')).probe(screening, signal),
      },
    ])
    return { screening }
  },
})
