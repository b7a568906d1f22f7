import { readFileSync } from 'node:fs'
import * as v from 'valibot'
import type { Build } from '../host/daemon.ts'

const Info = v.object({
  version: v.string(),
  buildDate: v.optional(v.string(), 'dev'),
  gitSha: v.optional(v.string(), 'unknown'),
})

/** What this daemon was built from. From source: the version of `package.json` and `dev`. */
export function readBuild(): Build {
  // Built code lies in dist/ or dist/core/, source code in core/build/.
  for (const place of ['./build.json', '../build.json', '../../package.json']) {
    let text: string
    try {
      text = readFileSync(new URL(place, import.meta.url), 'utf8')
    } catch {
      continue /* not this layout */
    }
    return v.parse(Info, JSON.parse(text))
  }
  throw new Error('neither build.json nor package.json was found beside the code: the installation is incomplete')
}
