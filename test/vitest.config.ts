import { defineConfig } from 'vitest/config'
import { fileURLToPath } from 'node:url'
import { secretive } from '../core/process/environment.ts'

// No test sees a key of whoever runs them.
for (const name of Object.keys(process.env)) if (secretive.test(name)) delete process.env[name]

export default defineConfig({
  root: fileURLToPath(new URL('..', import.meta.url)),
  resolve: { conditions: ['svc-source'] },
  ssr: { resolve: { conditions: ['svc-source'] } },
  test: {
    include: ['test/**/*.test.ts'],
    testTimeout: 60_000,
    hookTimeout: 120_000,
    // What is polled for comes when the machine gets to it; a second is too little for a loaded one.
    expect: { poll: { timeout: 10_000 } },
    pool: 'forks',
    maxWorkers: 2,
  },
})
