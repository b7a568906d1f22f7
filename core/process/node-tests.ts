import { pathToFileURL } from 'node:url'
import { typesConfig } from './installation.ts'

/**
 * Runs test files with Node's test runner, which shows the outcome in this terminal, and returns its exit code. The files
 * find `svc/testing`, and what else svc gives to plugins, in this installation: nothing has to be installed for them.
 */
export async function runNodeTests(folder: string, files: readonly string[], isWatching = false): Promise<number> {
  const { spawn } = await import('node:child_process')
  const isSource = import.meta.url.endsWith('.ts')
  const args = [
    '--disable-warning=ExperimentalWarning',
    ...(isSource ? ['--conditions=svc-source'] : []),
    `--import=data:text/javascript,${encodeURIComponent(resolver(pathToFileURL(typesConfig()).href))}`,
    '--test',
    ...(isWatching ? ['--watch'] : []),
    ...files,
  ]
  return await new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, { cwd: folder, stdio: 'inherit' })
    child.once('error', reject)
    child.once('exit', (code) => resolve(code ?? 1))
  })
}

/** A module that finds what svc gives to plugins, as the loader of the daemon does. */
function resolver(installation: string): string {
  return `import { registerHooks } from 'node:module'
registerHooks({
  resolve: (specifier, context, next) =>
    next(specifier, /^(svc|valibot)(\\/|$)/.test(specifier) ? { ...context, parentURL: '${installation}' } : context),
})`
}
