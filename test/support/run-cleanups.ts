import { afterAll, afterEach } from 'vitest'
import { cleanups } from './cleanups.ts'

// Vitest evaluates this file for every file of tests.
afterEach(async () => {
  for (const cleanup of cleanups.eachTest) await cleanup()
})
afterAll(async () => {
  for (const cleanup of cleanups.eachFile) await cleanup()
})
