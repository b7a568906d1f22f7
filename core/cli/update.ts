import * as v from 'valibot'
import { readBuild } from '../process/installation.ts'
import { runSystemProgram } from '../process/operator-program.ts'
import { commandLine } from '../process/command-name.ts'
import { isObject } from '../schema/object.ts'
import { readJson } from '../schema/nesting.ts'
import { defineCommand } from './command.ts'
import { exits, Failure } from './failure.ts'
import { print, printJson } from './output.ts'

/** How npm finds its configuration and its registry. */
const passed =
  /^(?:PATH|HOME|USER|LANG|LC_\w+|XDG_\w+|npm_config_\w+|NPM_\w+|NODE_EXTRA_CA_CERTS|(?:https?|no)_proxy)$/i
const INSTALL = 'npm install -g svc@latest'
/** What every version of svc has, and a package of somebody else that has its name does not. */
const OWN_EXPORT = './sdk'
/** npm prints the version alone when the package has no exports. */
const Published = v.union([
  v.looseObject({ version: v.string(), exports: v.optional(v.unknown()) }),
  v.pipe(
    v.string(),
    v.transform((version) => ({ version, exports: undefined })),
  ),
])

export default defineCommand({
  description:
    'Ask the package registry that npm is configured for whether there is a newer version, and say how to install it. ' +
    'Nothing is installed.',
  args: {
    check: { type: 'boolean', description: 'Compare this version with the newest one' },
    json: { type: 'boolean', description: 'Print JSON' },
  },
  examples: [['svc update --check', 'is there a newer version']],
  async run(args) {
    if (!args.check)
      throw new Failure(
        exits.usage,
        'svc does not replace itself',
        `${commandLine('update --check')} asks whether there is a newer version, and how to install it`,
      )
    const { version: current } = readBuild()
    const latest = await askRegistry()
    const isNewer = compareVersions(latest, current) > 0
    if (args.json) printJson({ current, latest, newer: isNewer })
    else
      print(
        isNewer
          ? `svc ${latest} is newer than this one (${current}). Install it with: ${INSTALL}`
          : `svc ${current} is the newest version.`,
      )
    return exits.ok
  },
})

async function askRegistry(): Promise<string> {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => passed.test(name)))
  const limits = ['--fetch-retries=1', '--fetch-timeout=20000', '--loglevel=error']
  const words = ['view', 'svc', 'version', 'exports', '--json', ...limits]
  const { code, stdout, stderr } = await runSystemProgram('npm', words, env)
  const published = code === 0 ? readPublished(stdout) : undefined
  if (published && !(isObject(published.exports) && OWN_EXPORT in published.exports))
    throw new Failure(
      exits.failed,
      'whether there is a newer version is not known: the package "svc" of this registry is another program',
      'do not install it; get svc where this one came from: `git pull` and `npm install` in a checkout',
    )
  if (published) return published.version
  throw new Failure(
    exits.failed,
    code === 'not-found'
      ? 'whether there is a newer version is not known: there is no program "npm"'
      : `whether there is a newer version is not known: npm could not tell (${reasonOf(stderr, stdout.trim())})`,
    code === 'not-found'
      ? 'install npm, which comes with Node, or look at the releases where svc came from'
      : 'see `npm view svc version` and `npm config get registry`; without a network nothing can be asked',
  )
}

function readPublished(text: string): v.InferOutput<typeof Published> | undefined {
  try {
    const result = v.safeParse(Published, readJson(text))
    return result.success && /^\d+\.\d+\.\d+/.test(result.output.version) ? result.output : undefined
  } catch {
    return undefined /* What it printed is told. */
  }
}

/** What npm says of an error, without the path of its log. */
function reasonOf(stderr: string, stdout: string): string {
  const lines = stderr.split('\n').map((line) => line.replace(/^npm (?:error|ERR!) ?/, '').trim())
  const told = lines.filter((line) => line !== '' && !/complete log|_logs/.test(line))
  return (
    told.slice(0, 2).join(', ') || (stdout === '' ? 'it printed no version' : `it printed "${stdout.slice(0, 80)}"`)
  )
}

/** Positive when the first one is newer; a version before a release is older than the release. */
function compareVersions(one: string, other: string): number {
  const parts = (version: string) => /^(\d+)\.(\d+)\.(\d+)(-.+)?/.exec(version)
  const [first, second] = [parts(one), parts(other)]
  for (const at of [1, 2, 3]) {
    const difference = Number(first?.[at] ?? 0) - Number(second?.[at] ?? 0)
    if (difference !== 0) return difference
  }
  return Number(first?.[4] === undefined) - Number(second?.[4] === undefined)
}
