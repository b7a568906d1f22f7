import { existsSync, readdirSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { Jiti } from 'jiti'
import { builtInParents } from './folders.ts'

/**
 * Plugins share these modules with the host, so that `instanceof` works; all other modules are loaded anew. Without
 * `cacheDir` nothing is cached.
 */
export async function openTranspiler(
  cacheDir: string | undefined,
  more: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {},
): Promise<Jiti> {
  const [{ createJiti }, contracts, sdk, internal, channels, providers, valibot] = await Promise.all([
    import('jiti'),
    importContracts(),
    import('svc/sdk'),
    import('svc/internal'),
    import('svc/channels'),
    import('svc/providers'),
    import('valibot'),
  ])
  return createJiti(join(cacheDir ?? '/', 'index.js'), {
    moduleCache: false,
    tryNative: false,
    fsCache: cacheDir ?? false,
    interopDefault: false,
    virtualModules: {
      'svc/sdk': sdk,
      'svc/internal': internal,
      'svc/channels': channels,
      'svc/providers': providers,
      ...contracts,
      valibot,
      ...more,
    },
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
