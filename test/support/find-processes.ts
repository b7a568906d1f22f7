import { join } from 'node:path'
import { builtPackage, isDistCurrent } from './built-package.ts'

/** Where tests find the processes of a build. */
export const PROCESSES = 'SVC_TEST_PROCESSES'

/**
 * Around a run of tests: processes of plugins are those of `dist/` where it was built from the sources as they are now.
 * Each starts in a quarter of the time that it takes from source.
 */
export default async function findProcesses(): Promise<void> {
  if (await isDistCurrent()) process.env[PROCESSES] = join(await builtPackage(), 'dist/processes')
}
