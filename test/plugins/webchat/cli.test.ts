import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { runHere } from '../../core/cli/here.ts'
import { startHost } from '../../support/host.ts'

let home: string
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'svc-open-'))
})
afterEach(() => rm(home, { recursive: true, force: true }))

it('`svc open` opens the page of the running daemon, and prints its address where there is no browser', async () => {
  await using host = await startHost({ home, plugins: ['webchat', 'system', 'audit'] })
  const browser = join(home, 'browser')
  const opened = join(home, 'opened')
  await writeFile(browser, `#!/bin/sh\nprintf %s "$1" > ${opened}\n`)
  await chmod(browser, 0o700)
  expect(await runHere(['open', '--home', home], { BROWSER: browser })).toMatchObject({
    code: 0,
    stdout: `opened ${host.url}/\n`,
  })
  expect(await readFile(opened, 'utf8')).toBe(`${host.url}/`)
  const none = { BROWSER: '', DISPLAY: '', WAYLAND_DISPLAY: '' }
  expect(await runHere(['open', '--home', home], none)).toMatchObject({
    code: 0,
    stdout: `${host.url}/\n`,
    stderr: expect.stringContaining('No browser was found') as string,
  })
})

it('`svc open` says how to start a daemon where none runs', async () => {
  expect(await runHere(['open', '--home', home])).toMatchObject({
    code: 3,
    stderr: expect.stringContaining(`\`svc start --home ${home}\``) as string,
  })
})
