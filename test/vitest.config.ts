import { join } from 'node:path'
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import type { ViteUserConfig as UserConfig } from 'vitest/config'
import { BaseSequencer } from 'vitest/node'
import type { TestSpecification } from 'vitest/node'
import { secretive } from '../core/process/environment.ts'
import { memoryFolder } from './support/memory-folder.ts'
import { PATIENCE_MS } from './support/patience.ts'

// No test sees a key of whoever runs them.
for (const name of Object.keys(process.env)) if (secretive.test(name)) delete process.env[name]

const root = fileURLToPath(new URL('..', import.meta.url))

// Daemons that tests start from source find their code compiled, which halves the time of a start.
process.env['NODE_COMPILE_CACHE'] ??= join(root, 'node_modules/.cache/compiled')

// Homes lie in memory where there is enough of it: a write on disk is waited for a thousand times longer. What must be
// on disk when is proved by killing daemons and by `strace`, not by the file system below a test.
const memory = memoryFolder()
if (memory !== undefined) {
  const folder = mkdtempSync(join(memory, 'svc-tests-'))
  process.env['TMPDIR'] = folder
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
}

/** Folders and files that take longest. They run first, so that none of them runs alone at the end. */
const slowFolders = [
  'test/contract/plugin.test.ts',
  'test/faults/',
  'test/api/hostile-input.test.ts',
  'test/plugins/webchat/long-answers.test.ts',
  'test/core/cli/',
  'test/plugins/webchat/',
  'test/contract/',
  'test/limits/',
  'test/plugins/security/',
  'test/threats/',
  'test/api/',
]

class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId, project }: TestSpecification): number => {
      const at = slowFolders.findIndex((folder) => moduleId.startsWith(join(root, folder)))
      // A process is used again only while the next file may share it.
      const shared = project.config.isolate ? 0 : slowFolders.length + 1
      return shared + (at === -1 ? slowFolders.length : at)
    }
    return (await super.sort(files)).toSorted((one, other) => rank(one) - rank(other))
  }
}

/** Every public module by its source, as `package.json` exports it. */
function* aliases(): Generator<{ find: RegExp; replacement: string }> {
  const { exports } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
    exports: Readonly<Record<string, string | { readonly 'svc-source': string }>>
  }
  for (const [path, target] of Object.entries(exports)) {
    if (typeof target === 'string') continue
    const find = new RegExp(`^svc/${path.slice('./'.length).replace('*', '(.+)')}$`)
    yield {
      find,
      replacement: fileURLToPath(new URL(`../${target['svc-source'].replace('*', '$1')}`, import.meta.url)),
    }
  }
}

/**
 * Files that have a process of their own: they measure or change what a process has once. All others run one after
 * another in processes that have read the code of the daemon before, which is most of the time of a short file. They
 * leave no listener, variable of the environment or fake clock behind.
 */
const alone = [
  'test/faults/**/!(provider|provider-reload).test.ts',
  'test/core/cli/{npm-start,pack,process-events,process-hardening,secret-input,start,terminal}.test.ts',
  'test/core/process/**/*.test.ts',
  'test/contract/plugin.test.ts',
  'test/plugins/security/{budget,probes}.test.ts',
  'test/plugins/wasm/**/*.test.ts',
  'test/threats/programs.test.ts',
]
/** Files that replace modules, which Vite does. They have a process of their own too. */
const replacing = globSync('{test,playground}/**/*.test.ts', { cwd: root }).filter((file) =>
  /\bvi\.(?:mock|doMock)\(/.test(readFileSync(join(root, file), 'utf8')),
)
const everyFile = ['test/**/*.test.ts', 'playground/**/*.test.ts']

const common = {
  root,
  resolve: {
    conditions: ['svc-source'],
    alias: [...aliases()],
  },
  ssr: { resolve: { conditions: ['svc-source'] } },
} satisfies UserConfig
const options = {
  setupFiles: ['run-cleanups', 'use-processes'].map((name) => join(root, `test/support/${name}.ts`)),
  // A limit only ends what hangs: no test has one of its own, which a loaded machine would reach.
  testTimeout: 3 * PATIENCE_MS,
  hookTimeout: 3 * PATIENCE_MS,
  // What is polled for comes when the machine gets to it; a second is too little for a loaded one.
  expect: { poll: { timeout: PATIENCE_MS } },
  pool: 'forks',
  // There are more processes than cores: threads of each that collect garbage side by side only take turns. Most of what
  // a test makes is garbage soon, and is not moved where there is room for it until then.
  execArgv: ['--single-threaded-gc', '--max-semi-space-size=48'],
  // More than twice the cores of the smallest machine: with four, a fifth of its time is waited.
  maxWorkers: 5,
  maxConcurrency: 4,
} satisfies UserConfig['test']
/** Node reads the sources itself and keeps them compiled for all processes; Vite would rewrite every import of theirs. */
const native = {
  ...options,
  setupFiles: [...options.setupFiles, join(root, 'test/support/use-sources.ts')],
  experimental: { viteModuleRunner: false, nodeLoader: false },
  execArgv: [...options.execArgv, '--import', new URL('support/public-modules.ts', import.meta.url).href],
} satisfies UserConfig['test']

export default defineConfig({
  ...common,
  test: {
    ...options,
    globalSetup: ['serve-postgres', 'run-locks', 'find-processes'].map((name) => join(root, `test/support/${name}.ts`)),
    sequence: { sequencer: SlowFirst },
    projects: [
      { ...common, test: { ...native, name: 'alone', include: alone, exclude: replacing } },
      { ...common, test: { ...options, name: 'replacing', include: replacing } },
      {
        ...common,
        test: { ...native, name: 'shared', include: everyFile, exclude: [...alone, ...replacing], isolate: false },
      },
    ],
  },
})
