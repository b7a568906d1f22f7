// Nothing is imported here: whatever was would be compiled before the cache of compiled code is on.
const { existsSync, mkdirSync } = process.getBuiltinModule('node:fs')
const module = process.getBuiltinModule('node:module')
const { homedir } = process.getBuiltinModule('node:os')
const { join, resolve } = process.getBuiltinModule('node:path')

/**
 * The home as far as it must be known before anything is loaded; the configuration reads it again with all its rules.
 */
function earlyHome(argv: readonly string[]): string {
  const at = argv.findIndex((word) => word === '--home' || word.startsWith('--home='))
  const flag = at < 0 ? undefined : argv[at]?.includes('=') ? argv[at]?.slice('--home='.length) : argv[at + 1]
  const home = process.env['HOME'] || homedir()
  return resolve((flag || process.env['SVC_HOME'] || join(home, '.svc')).replace(/^~(?=$|\/)/, home))
}

/**
 * Keeps compiled code in the home. Its folders are made here one by one: Node tries for ever where the system answers
 * `ENOENT` although the folder above exists, as `/proc` does. Without them commands only start slower.
 */
function enableCache(): void {
  const cache = join(home, 'cache')
  const compiled = join(cache, 'compile')
  try {
    for (const folder of [home, cache, compiled]) if (!existsSync(folder)) mkdirSync(folder)
  } catch {
    return
  }
  module.enableCompileCache(compiled)
}

// Said before anything is loaded that an older one cannot even read.
if (Number.parseInt(process.versions.node, 10) < 24) {
  process.stderr.write(
    `svc: Node 24 or newer is needed, this is ${process.version}\n` +
      '  in a checkout, `npx svc` and `npm start` use the one that `npm install` brought\n',
  )
  process.exit(1)
}

// Whatever is written belongs to this user only.
process.umask(0o077)
process.title = 'svc'
const argv = process.argv.slice(2)
const home = earlyHome(argv)
const serves = argv[0] === 'start' || argv[0] === 'dev'
// Left to itself Node opens its debugger on this signal; what is said to it later tells the log.
if (serves) process.on('SIGUSR1', () => undefined)
// The cache must not make a home for a command that only asks.
if (existsSync(home) || (serves && !argv.includes('--help'))) enableCache()
// A reader that goes away, as in `svc config get | head` or with the window of a terminal, ends a command without an
// error, and a daemon not at all.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE' && error.code !== 'EIO') throw error
    if (!serves) process.exit(0)
  })
}

const { runLine } = await import('./run.ts')
process.exitCode = await runLine(argv)
// Whatever a part forgot to close must not keep an ended command alive.
setTimeout(() => process.exit(), 2000).unref()
