import { describe, expect, it } from 'vitest'
import { code, resolveImport, sources } from './sources.ts'

const core = sources('core')
const plugins = sources('plugins')
const adapters = sources('adapters')
/** Adapters that are another one with other settings: they import its adapter and its configuration. */
const presets: Readonly<Record<string, string>> = { 'adapters/channels/gitter': 'adapters/channels/matrix' }
const isEngine = (own: string, target: string): boolean =>
  ['adapter.ts', 'config.ts'].some((name) => target === `${presets[own]}/${name}`)
/** A file beside the contract of a kind of adapters, which publishes it. */
const isPublished = (path: string): boolean => /^adapters\/\w+\/[\w-]+\.ts$/.test(path)
const all = [...core, ...plugins, ...adapters]

/**
 * Folders of core from low to high. A file imports its own folder and lower ones, types included, so that no folders
 * depend on each other in a circle.
 */
const layers: readonly string[] = [
  'errors',
  'schema',
  'scope',
  'log',
  'hooks',
  'storage',
  'files',
  'metrics',
  'process',
  'net',
  'limit',
  'auth',
  'jobs',
  'config',
  'tools',
  'http',
  'host',
  'app',
  'app.ts',
  'sdk.ts',
  'internal.ts',
  'cli',
  'testing',
  'testing.ts',
  'build',
]
const layerOf = (path: string): number => layers.indexOf(path.split('/')[1] ?? '')

/** Packages that only these modules import. */
const importers: readonly (readonly [package_: RegExp, places: readonly string[]])[] = [
  [/^rou3($|\/)/, ['core/http/']],
  [/^listhen$/, ['core/http/']],
  [/^hookable$/, ['core/hooks/']],
  [/^unstorage($|\/)/, ['core/storage/', 'core/host/context.ts']],
  [/^db0($|\/)/, ['core/storage/', 'core/app/']],
  [/^better-sqlite3$/, ['core/storage/']],
  [/^pg$/, ['core/storage/']],
  [/^pg-boss$/, ['plugins/queue/pg-boss/']],
  [/^c12$/, ['core/config/']],
  [/^smol-toml$/, ['core/config/', 'plugins/agents/manifest.ts']],
  [/^jiti$/, ['core/host/loader.ts', 'core/host/transpiler.ts']],
  [/^croner$/, ['core/jobs/', 'plugins/schedules/timing/']],
  [/^consola($|\/)/, ['core/log/']],
  [/^ofetch$/, ['core/net/']],
  [/^citty$/, ['core/cli/']],
  [/^ws$/, ['core/http/', 'core/net/']],
  [/^mqtt$/, ['adapters/channels/mqtt/']],
  [/^@xmpp\//, ['adapters/channels/xmpp/']],
  [/^(imapflow|nodemailer|postal-mime)$/, ['adapters/channels/email/']],
  [/^busboy$/, ['plugins/files/']],
  [/^yauzl$/, ['plugins/backups/', 'core/files/read-archive.ts']],
  [/^json5$/, ['plugins/migrate/source/parse.ts']],
  [/^@msgpack\/msgpack$/, ['plugins/migrate/readers/message-pack.ts']],
  [/^yazl$/, ['plugins/backups/']],
  [/^file-type$/, ['core/files/']],
  [/^@(tokenlens|pydantic)\//, ['plugins/catalog/collect.ts']],
  [/^rolldown$/, ['core/build/']],
  [/^vite$/, ['plugins/webchat/build.ts']],
  [/^(preact|dompurify)($|\/)/, ['plugins/webchat/page/']],
  [
    /^marked($|\/)/,
    ['plugins/webchat/page/', 'core/cli/terminal/', 'plugins/channels/text/', 'plugins/docs/markdown.ts'],
  ],
  [/^(string-width|wrap-ansi)$/, ['core/cli/terminal/', 'plugins/channels/text/']],
]

/** Dangerous modules of Node, and the modules with the guards that alone import them. */
const primitives: readonly (readonly [module: RegExp, places: readonly string[]])[] = [
  [
    /^(node:)?child_process$/,
    [
      'core/process/spawn.ts',
      'core/process/operator-program.ts',
      'core/process/spawner.ts',
      'core/process/fork.ts',
      'core/process/plugin-process.ts',
      'core/process/node-tests.ts',
      'core/process/browser.ts',
    ],
  ],
  [/^(node:)?(http|https|http2|tls|dgram)$/, ['core/http/', 'core/net/']],
  [/^(node:)?net$/, ['core/http/', 'core/net/', 'core/auth/', 'core/limit/']],
  [/^(node:)?dns(\/promises)?$/, ['core/net/']],
  [/^(node:)?vm$/, []],
  [/^(node:)?worker_threads$/, ['core/storage/check-file.ts', 'plugins/wasm/']],
]

const allowed = (path: string, places: readonly string[]): boolean =>
  places.some((place) => path === place || (place.endsWith('/') && path.startsWith(place)))
const isType = (text: string, specifier: string): boolean =>
  !new RegExp(
    `(?:^|\\n)\\s*(?:import|export)\\s(?!type\\b)[^'";]*['"]${specifier.replaceAll(/[.*+?^${}()|[\]\\/]/g, String.raw`\$&`)}['"]`,
  ).test(text) && !text.includes(`import('${specifier}')`)

/** What a plugin and its commands have in common. It imports nothing else of the plugin. */
const sharedWithCommands: readonly string[] = [
  'plugins/agents/signing/',
  'plugins/plugin-admin/inspect/',
  'plugins/plugin-admin/scaffold/',
  'plugins/system/contract.ts',
]
const isShared = (path: string): boolean => allowed(path, sharedWithCommands)
const isCli = (path: string): boolean => /^plugins\/[^/]+\/cli(?:\.ts$|\/)/.test(path)

describe('what imports what', () => {
  it('core imports neither plugins nor adapters, but for the build and the public names', () => {
    const wrong = core
      .filter((file) => !file.path.startsWith('core/build/'))
      .flatMap((file) => file.imports.map((specifier) => [file.path, resolveImport(file.path, specifier)] as const))
      .filter(([, target]) => /^(plugins|adapters|skills|test|playground)\//.test(target))
    expect(wrong).toEqual([])
  })

  it('a folder of core imports itself and lower ones, types included', () => {
    const wrong = core
      .flatMap((file) => file.imports.map((specifier) => [file.path, resolveImport(file.path, specifier)] as const))
      .filter(([from, target]) => target.startsWith('core/') && layerOf(target) > layerOf(from))
    expect(wrong).toEqual([])
  })

  it('every folder of core is a known layer', () => {
    expect(core.filter((file) => layerOf(file.path) === -1).map((file) => file.path)).toEqual([])
  })

  it('a plugin imports svc/*, packages, its own folder and contracts of other plugins', () => {
    const wrong = plugins.flatMap((file) => {
      const own = file.path.split('/').slice(0, 2).join('/')
      return file.imports
        .map((specifier) => [file.path, resolveImport(file.path, specifier)] as const)
        .filter(
          ([, target]) =>
            /^(core|adapters|test|playground)\//.test(target) ||
            (target.startsWith('plugins/') &&
              !target.startsWith(`${own}/`) &&
              !target.endsWith('/contract.ts') &&
              !(isCli(file.path) && target.endsWith('/cli/client.ts'))),
        )
    })
    expect(wrong).toEqual([])
  })

  it('the commands of a plugin and the plugin itself do not import each other', () => {
    const wrong = plugins.flatMap((file) =>
      file.imports
        .map((specifier) => [file.path, resolveImport(file.path, specifier)] as const)
        .filter(([, target]) =>
          isCli(file.path)
            ? target.startsWith('plugins/') && !isCli(target) && !isShared(target)
            : target === 'svc/cli' || isCli(target),
        ),
    )
    expect(wrong).toEqual([])
  })

  it('what a plugin shares with its commands imports nothing else of the plugin', () => {
    const wrong = plugins
      .filter(({ path }) => isShared(path))
      .flatMap((file) =>
        file.imports
          .map((specifier) => [file.path, resolveImport(file.path, specifier)] as const)
          .filter(([, target]) => target.startsWith('plugins/') && !isShared(target)),
      )
    expect(wrong).toEqual([])
  })

  it("the list of a plugin's commands evaluates nothing but svc/cli", () => {
    const wrong = plugins
      .filter((file) => /^plugins\/[^/]+\/cli\.ts$/.test(file.path))
      .flatMap((file) =>
        file.imports
          .filter((specifier) => specifier !== 'svc/cli' && !file.text.includes(`import('${specifier}')`))
          .map((specifier) => [file.path, specifier]),
      )
    expect(wrong).toEqual([])
  })

  it('a plugin declares every contract it uses at run time', () => {
    const wrong = plugins
      .filter((file) => /^plugins\/[^/]+\/index\.ts$/.test(file.path))
      .flatMap((index) => {
        const own = index.path.split('/').slice(0, 2).join('/')
        const used = new Set(
          plugins
            .filter((file) => file.path.startsWith(`${own}/`))
            .flatMap((file) =>
              file.imports
                .filter((specifier) => !isType(file.text, specifier))
                .map((specifier) => resolveImport(file.path, specifier))
                .filter((target) => /^plugins\/[^/]+\/contract\.ts$/.test(target) && !target.startsWith(`${own}/`)),
            ),
        )
        const declared = new Set(index.imports.map((specifier) => resolveImport(index.path, specifier)))
        // Hooks are values: listening to a plugin that is not there costs nothing, so hooks.ts may name its contract
        // alone.
        const listening = new Set(
          plugins
            .filter((file) => file.path.startsWith(`${own}/`) && file.path !== index.path)
            .flatMap((file) => file.imports.map((specifier) => resolveImport(file.path, specifier))),
        )
        return [...used]
          .filter((target) => !declared.has(target) && !listening.has(target))
          .map((target) => [own, target])
      })
    expect(wrong).toEqual([])
  })

  it('an adapter imports svc/*, packages and its own folder, and a preset the adapter that it sets', () => {
    const wrong = adapters.flatMap((file) => {
      const own = file.path.split('/').slice(0, 3).join('/')
      // The files beside a contract are what it publishes: they import each other.
      const isOwn = (target: string): boolean =>
        isPublished(file.path) ? isPublished(target) : target.startsWith(`${own}/`) || isEngine(own, target)
      return file.imports
        .map((specifier) => [file.path, resolveImport(file.path, specifier)] as const)
        .filter(([, target]) => /^(core|plugins|test|playground|adapters)\//.test(target) && !isOwn(target))
    })
    expect(wrong).toEqual([])
  })

  it('adapters and the playground import the public modules alone', () => {
    const wrong = [...adapters, ...sources('playground')].flatMap((file) =>
      file.imports.filter((specifier) => specifier === 'svc/internal').map((specifier) => [file.path, specifier]),
    )
    expect(wrong).toEqual([])
  })

  it('a contract imports svc/*, valibot and other contracts', () => {
    const wrong = all
      .filter((file) => file.path.endsWith('/contract.ts'))
      .flatMap((file) =>
        file.imports
          .filter(
            (specifier) =>
              !['svc/sdk', 'svc/internal', 'svc/channels', 'svc/providers', 'valibot'].includes(specifier) &&
              !specifier.endsWith('/contract.ts') &&
              !(isPublished(file.path) && isPublished(resolveImport(file.path, specifier))),
          )
          .map((specifier) => [file.path, specifier]),
      )
    expect(wrong).toEqual([])
  })

  it('restricted packages are imported by their modules only', () => {
    const wrong = all.flatMap((file) =>
      file.imports
        .filter((specifier) => !isType(file.text, specifier))
        .flatMap((specifier) =>
          importers
            .filter(([name, places]) => name.test(specifier) && !allowed(file.path, places))
            .map(() => [file.path, specifier]),
        ),
    )
    expect(wrong).toEqual([])
  })
})

describe('one guarded module for each dangerous primitive', () => {
  const server = all.filter(
    (file) => !file.path.startsWith('plugins/webchat/page/') && !file.path.startsWith('core/build/'),
  )

  it('dangerous modules of Node are imported by the guarded modules only', () => {
    const wrong = server.flatMap((file) =>
      file.imports
        .filter((specifier) => !isType(file.text, specifier))
        .flatMap((specifier) =>
          primitives
            .filter(([name, places]) => name.test(specifier) && !allowed(file.path, places))
            .map(() => [file.path, specifier]),
        ),
    )
    expect(wrong).toEqual([])
  })

  it('nothing calls the global fetch', () => {
    // A name that was imported, destructured or declared in the file is the guarded one; a bare name is the platform's.
    const wrong = server
      .filter((file) => !file.path.startsWith('core/net/'))
      .filter((file) => {
        const text = code(file.text)
        return (
          /globalThis\.fetch|XMLHttpRequest|new EventSource\(/.test(text) ||
          (/(?<![.\w#])fetch\(/.test(text.replaceAll(/\basync fetch\(|^\s*fetch\(\w+: /gm, '')) &&
            !/[{,(]\s*(?:readonly )?fetch\s*[,}:)]|const fetch\b/.test(text))
        )
      })
      .map((file) => file.path)
    expect(wrong).toEqual([])
  })

  it('nothing turns text into code', () => {
    const wrong = server
      .filter((file) => /(?<![.\w])eval\(|new Function\(|new AsyncFunction\(/.test(code(file.text)))
      .map((file) => file.path)
    expect(wrong).toEqual([])
  })

  it('JSON and TOML are parsed where their depth is checked', () => {
    // It reads what the daemon wrote, and sees no other code of it.
    const inSandbox = 'plugins/browser/processes/driver.ts'
    const wrong = server
      .filter(
        ({ path, text }) =>
          (path !== 'core/schema/nesting.ts' && path !== inSandbox && /\bJSON\.parse\b/.test(code(text))) ||
          (path !== 'core/config/toml-text.ts' && /\bparse\b[^;\n]*'smol-toml'/.test(code(text))),
      )
      .map(({ path }) => path)
    expect(wrong).toEqual([])
  })

  it('the environment is read by what takes the secrets out of it, the configuration and the command line only', () => {
    const wrong = server
      .filter((file) => /process\.env\b/.test(code(file.text)))
      .map((file) => file.path)
      .filter(
        (path) =>
          !['core/config/', 'core/cli/', 'core/build/'].some((place) => path.startsWith(place)) &&
          path !== 'core/process/inherited.ts',
      )
    expect(wrong).toEqual([])
  })
})
