import { messageOf } from 'svc/internal'
import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import * as v from 'valibot'
import {
  defineCommand,
  exits,
  failed,
  homeArgs,
  passed,
  print,
  printJson,
  readJson,
  renderTable,
  warned,
} from 'svc/cli'
import type { CheckResult } from 'svc/cli'
import { inspectPlugin } from '../inspect/inspect.ts'
import type { Inspection } from '../inspect/inspection.ts'
import { findFolder } from './folder.ts'
import { testFiles } from '../inspect/test-files.ts'

type Named = CheckResult & { readonly name: string }
const PackageFile = v.looseObject({
  name: v.optional(v.string()),
  version: v.optional(v.string()),
  dependencies: v.optional(v.record(v.string(), v.string()), {}),
})

/** Those of a daemon without a configuration. */
const LIMITS = { inspect_timeout_ms: 20_000, max_inspection_bytes: 2_097_152, max_problem_chars: 2000 }

export default defineCommand({
  description:
    'Check the folder of a plugin before it is installed: does it load, for which interface, what does it use, are ' +
    'its dependencies there, has it tests. Nothing is installed, and no daemon is needed.',
  args: {
    plugin: { type: 'positional', required: false, default: '.', description: 'Folder, or name in <home>/plugins' },
    home: homeArgs.home,
    json: { type: 'boolean', description: 'Print JSON' },
  },
  examples: [
    ['svc plugin doctor ./weather', 'exit code 1 when it cannot be installed'],
    ['svc plugin doctor weather', 'the one in <home>/plugins'],
  ],
  async run(args) {
    const folder = findFolder(args.plugin, args.home)
    const checks = await checkFolder(realpathSync(folder))
    if (args.json) printJson({ folder, checks })
    else
      print(
        renderTable(
          ['CHECK', 'STATE', 'FOUND'],
          checks.map(({ name, state, found, advice }) => [name, state, advice ? `${found}; ${advice}` : found]),
        ),
      )
    return checks.some(({ state }) => state === 'fail') ? exits.failed : exits.ok
  },
})

async function checkFolder(folder: string): Promise<readonly Named[]> {
  const packageFile = readPackage(folder)
  const inspected = await inspectPlugin(folder, LIMITS).catch(messageOf)
  const loads = typeof inspected === 'string' ? undefined : inspected
  return [
    { name: 'loads', ...(loads ? passed(`${loads.name} ${loads.version}`) : failed(String(inspected), 'correct it')) },
    ...(loads
      ? [
          checkInterface(loads),
          checkPermissions(loads),
          checkAccess(loads),
          checkIsolation(loads),
          checkVersion(loads, packageFile),
        ]
      : []),
    checkDependencies(folder, packageFile),
    checkTests(folder),
  ]
}

function checkInterface({ apiVersion }: Inspection): Named {
  const name = 'interface'
  if (apiVersion !== undefined) return { name, ...passed(`apiVersion ${apiVersion}`) }
  return { name, ...warned('it does not say for which interface it is written', "add apiVersion: '^1.2.0'") }
}

function checkPermissions({ permissions, declaresUses }: Inspection): Named {
  const name = 'permissions'
  if (declaresUses || permissions.length > 0) return { name, ...passed(permissions.join(', ') || 'it uses nothing') }
  return { name, ...warned('it declares nothing: once installed, it may use nothing', 'add uses to its definition') }
}

function checkAccess({ declaresUses }: Inspection): Named {
  const name = 'access'
  if (declaresUses) return { name, ...passed('declared: it may use its permissions, and nothing else') }
  return {
    name,
    ...warned('unrestricted as a file in <home>/plugins; installed, it gets nothing', 'declare what it uses'),
  }
}

function checkIsolation({ unsupported }: Inspection): Named {
  const name = 'isolation'
  if (unsupported.length === 0) return { name, ...passed('it can run in a process of its own') }
  return { name, ...passed(`in the daemon only: ${unsupported.join(', ')} need its process`) }
}

function checkVersion({ version }: Inspection, found: Package | string): Named {
  const name = 'package.json'
  if (typeof found === 'string') return { name, ...warned(found, 'npm needs it to pack and publish the plugin') }
  if (found.version === version) return { name, ...passed(`${found.name ?? 'without a name'} ${version}`) }
  return {
    name,
    ...warned(`its version is ${found.version ?? 'missing'}, the plugin says ${version}`, 'make them equal'),
  }
}

function checkDependencies(folder: string, found: Package | string): Named {
  const name = 'dependencies'
  const wanted = typeof found === 'string' ? [] : Object.keys(found.dependencies)
  const missing = wanted.filter(
    (one) => !['svc', 'valibot'].includes(one) && !existsSync(join(folder, 'node_modules', one)),
  )
  if (missing.length === 0) return { name, ...passed(wanted.join(', ') || 'none') }
  return {
    name,
    ...warned(`not in its folder: ${missing.join(', ')}`, 'an installation brings them; here, `npm install`'),
  }
}

function checkTests(folder: string): Named {
  const name = 'tests'
  const tests = testFiles(folder)
  if (tests.length > 0) return { name, ...passed(tests.join(', ')) }
  return { name, ...warned('none', 'write one on svc/testing') }
}

type Package = v.InferOutput<typeof PackageFile>
/** Why it cannot be read, when that is so. */
function readPackage(folder: string): Package | string {
  const path = join(folder, 'package.json')
  if (!existsSync(path)) return 'there is none'
  const parsed = v.safeParse(PackageFile, readJson(readFileSync(path, 'utf8')))
  return parsed.success ? parsed.output : 'it cannot be read'
}
