import { spawn } from 'node:child_process'

/** A program that fails says so at once; one that runs longer has opened something. */
const FAILS_WITHIN_MS = 2000
/** What a browser is found and shown with; the rest of the environment may hold secrets. */
const passed = /^(?:PATH|HOME|USER|LOGNAME|LANG|LC_\w+|XDG_\w+|DBUS_\w+|DISPLAY|WAYLAND_DISPLAY|XAUTHORITY|BROWSER)$/

/** Opens a web page in the browser of whoever sits here. Resolves to `false` where there is none. */
export async function openBrowser(
  address: string,
  env: NodeJS.ProcessEnv,
  platform: NodeJS.Platform = process.platform,
): Promise<boolean> {
  const url = URL.parse(address)
  if (!url || !/^https?:$/.test(url.protocol)) return false
  const [program, ...args] = opener(env, platform)
  if (program === undefined) return false
  const given =
    platform === 'win32' ? env : Object.fromEntries(Object.entries(env).filter(([name]) => passed.test(name)))
  return await start(program, [...args, url.href], given)
}

/** Without a display `xdg-open` would take over the terminal with a browser of texts. */
function opener(env: NodeJS.ProcessEnv, platform: NodeJS.Platform): readonly string[] {
  if (platform === 'darwin') return ['open']
  if (platform === 'win32') return ['rundll32', 'url.dll,FileProtocolHandler']
  const named = env['BROWSER']?.split(':')[0]
  if (named) return [named]
  return env['DISPLAY'] || env['WAYLAND_DISPLAY'] ? ['xdg-open'] : []
}

/** Whether it runs, or ended well. It stays when this process ends. */
function start(program: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<boolean> {
  return new Promise((resolve) => {
    const child = spawn(program, args, { env, detached: true, stdio: 'ignore' })
    const timer = setTimeout(() => resolve(true), FAILS_WITHIN_MS)
    const end = (opened: boolean): void => {
      clearTimeout(timer)
      resolve(opened)
    }
    child.once('error', () => end(false)).once('exit', (code) => end(code === 0))
    child.unref()
  })
}
