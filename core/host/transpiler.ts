import { existsSync, readdirSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, dirname, isAbsolute, join } from 'node:path'
import type { Jiti, JitiOptions } from 'jiti'
import { builtInParents } from './folders.ts'
import { NativeModules } from './native-modules.ts'

type VirtualModules = Readonly<Record<string, Readonly<Record<string, unknown>>>>
interface NativeLoading {
  readonly onError: (error: unknown) => never
  readonly nativeImport: (id: string) => Promise<unknown>
  readonly createRequire: (path: string) => NodeJS.Require
}
/** What the package exports is this with loading by Node itself, whose modules it never forgets. */
type CreateJiti = (id: string, options: JitiOptions, native: NativeLoading) => Jiti

const require = createRequire(import.meta.url)

/** Evaluates the code of plugins. */
export class Transpiler {
  readonly #options: JitiOptions
  readonly #cacheDir: string | undefined
  readonly #native = new Map<string, NativeModules>()

  constructor(cacheDir: string | undefined, virtualModules: VirtualModules) {
    this.#cacheDir = cacheDir
    this.#options = {
      moduleCache: false,
      tryNative: false,
      fsCache: cacheDir ?? false,
      interopDefault: false,
      virtualModules,
      transform,
    }
  }

  /** Evaluates a file of the plugin in `folder`, and what it imports: each as it is on disk now. */
  async import(file: string, folder = dirname(file)): Promise<unknown> {
    const modules = this.#native.get(folder) ?? new NativeModules(folder, require.cache)
    this.#native.set(folder, modules)
    // It keeps every package.json it has read.
    if (modules.refresh()) delete require.cache[pathOfJiti('jiti.cjs')]
    const createJiti = partOfJiti<CreateJiti>('jiti.cjs')
    const native = nativeLoading(modules, modules.generation)
    return await createJiti(join(this.#cacheDir ?? '/', 'index.js'), this.#options, native).import(file)
  }
}

/** Makes the code that runs of a source file. */
export const transform: NonNullable<JitiOptions['transform']> = (options) =>
  partOfJiti<NonNullable<JitiOptions['transform']>>('babel.cjs')(options)

/** How Node loads for one copy of a plugin. */
function nativeLoading(modules: NativeModules, generation: number): NativeLoading {
  return {
    onError(error) {
      throw error
    },
    nativeImport: (id) => {
      const address = isAbsolute(id) ? modules.address(id, generation) : id
      // An expression, so that a bundler leaves it alone.
      return import(/* @vite-ignore */ address)
    },
    createRequire(path) {
      const native = createRequire(path)
      const load = (id: string): unknown => {
        modules.add(id)
        return native(id)
      }
      return Object.assign(load, native)
    },
  }
}

function pathOfJiti(part: string): string {
  return join(dirname(require.resolve('jiti/package.json')), 'dist', part)
}
function partOfJiti<T>(part: string): T {
  return require(pathOfJiti(part)) as T
}

/**
 * Plugins share these modules with the host, so that `instanceof` works; all other modules are loaded anew. Without
 * `cacheDir` nothing is cached.
 */
export async function openTranspiler(cacheDir: string | undefined, more: VirtualModules = {}): Promise<Transpiler> {
  const [contracts, sdk, internal, channels, providers, valibot] = await Promise.all([
    importContracts(),
    import('svc/sdk'),
    import('svc/internal'),
    import('svc/channels'),
    import('svc/providers'),
    import('valibot'),
  ])
  return new Transpiler(cacheDir, {
    'svc/sdk': sdk,
    'svc/internal': internal,
    'svc/channels': channels,
    'svc/providers': providers,
    ...contracts,
    valibot,
    ...more,
  })
}

/** The public modules of the built-in plugins: tokens, hooks and schemas. */
async function importContracts(): Promise<Readonly<Record<string, unknown>>> {
  const names = contractNames().map((name) => `svc/contracts/${name}`)
  // An expression, so that a bundler leaves it alone.
  const modules = await Promise.all(names.map((name) => import(/* @vite-ignore */ name) as Promise<unknown>))
  return Object.fromEntries(names.map((name, index) => [name, modules[index]]))
}

/** Built-in plugins with a contract, which others import as `svc/contracts/<name>`. */
function contractNames(): readonly string[] {
  const [plugins = ''] = builtInParents()
  const built = join(dirname(plugins), 'contracts')
  const names = existsSync(built)
    ? readdirSync(built).map((file) => basename(file, '.js'))
    : readdirSync(plugins).filter((name) => existsSync(join(plugins, name, 'contract.ts')))
  return names.sort()
}
