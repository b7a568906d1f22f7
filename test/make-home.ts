/**
 * `npm run fixture-home`: keeps a small home of this version, with data of each kind, in `test/fixtures/homes`. Run it
 * when the version is released; `test/faults/released-homes.test.ts` starts every later version on it.
 */
import { readFileSync } from 'node:fs'
import { makeReleased } from './support/released-home.ts'

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string }
console.log(await makeReleased(version))
