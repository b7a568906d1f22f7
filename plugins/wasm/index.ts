import { definePlugin } from 'svc/sdk'
import * as v from 'valibot'
import { CollectProbes } from '../security/contract.ts'
import { WasmRunner } from './contract.ts'
import type { GuestProcess } from './guest-process.ts'

export default definePlugin({
  name: 'wasm',
  version: '1.0.0',
  config: v.object({}),
  provides: { runner: WasmRunner },
  setup({ hooks, own }) {
    // Created with the first guest: most daemons run none.
    let guests: Promise<GuestProcess> | undefined
    const createProcess = async (): Promise<GuestProcess> => new (await import('./guest-process.ts')).GuestProcess()
    const runner: WasmRunner = {
      run: async (request) => (await (guests ??= createProcess())).run(request),
    }
    own('guest process', async () => (await guests)?.[Symbol.dispose]())
    hooks.on(CollectProbes, (probes) => [
      ...probes,
      { system: 'wasm_dual_metering', run: async (signal) => (await import('./probe.ts')).probe(runner, signal) },
    ])
    return { runner }
  },
})
