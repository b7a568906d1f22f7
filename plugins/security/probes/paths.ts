import { link, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { confine, openConfined } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { Finding, ProbeCase } from '../contract.ts'

const hostile: readonly string[] = [
  '',
  '.',
  '..',
  '../outside',
  'a/../../outside',
  'a/..',
  './a',
  'a/./b',
  'a//b',
  '/etc/passwd',
  '//server/share',
  '~',
  '~/x',
  '~root/x',
  'C:\\x',
  'c:/x',
  'a\\b',
  '..\\x',
  '\\\\server\\share',
  'a\0b',
  'a\nb',
  'a\u2028b',
  '%2e%2e/x',
  '%252e%252e/x',
  'a%2fb',
  'a.',
  'a ',
  'dir./x',
  'a/ /b',
  'con',
  'NUL',
  'aux.txt',
  'com1',
  'LPT9.log',
  'a:b',
  'file.txt::$DATA',
  'cafe\u0301',
  '\ud800',
  'x'.repeat(256),
  `${'a/'.repeat(512)}b`,
]
const legal: readonly string[] = [
  'a',
  'notes/today.md',
  'two words.txt',
  'caf\u00e9/\u65e5\u672c.txt',
  'a.b.c',
  'data-1_2',
]
const outside = 'outside stays as it is'

/**
 * Names through the resolver of the daemon, in a temporary folder: every hostile one is refused, every legal one
 * accepted.
 */
export async function probe(): Promise<Finding> {
  const base = await mkdtemp(join(tmpdir(), 'svc-probe-'))
  try {
    const root = join(base, 'root')
    const secret = join(base, 'outside')
    await mkdir(root)
    await writeFile(secret, outside)
    await Promise.all([
      symlink(secret, join(root, 'link')),
      symlink(base, join(root, 'folder')),
      link(secret, join(root, 'hard')),
      writeFile(join(root, 'plain'), 'plain'),
    ])
    const cases: ProbeCase[] = []
    for (const name of hostile)
      cases.push({
        name: `refuses ${JSON.stringify(name.slice(0, 24))}`,
        passed: await isRefused(() => confine(root, name)),
      })
    for (const name of legal)
      cases.push({ name: `accepts ${JSON.stringify(name)}`, passed: (await confine(root, name)).endsWith(name) })
    for (const name of ['link', 'folder/outside', 'hard']) {
      cases.push({ name: `refuses to read ${name}`, passed: await isRefused(() => openConfined(root, name, 'read')) })
      cases.push({ name: `refuses to write ${name}`, passed: await isRefused(() => openConfined(root, name, 'write')) })
    }
    if (process.platform !== 'win32')
      cases.push({ name: 'refuses a device', passed: await isRefused(() => openConfined('/dev', 'null', 'read')) })
    cases.push({
      name: 'refuses what is denied above it',
      passed: await isRefused(() => confine(root, 'plain', { denied: [join(root, 'plain')] })),
    })
    const handle = await openConfined(root, 'plain', 'read')
    try {
      cases.push({ name: 'reads a plain file', passed: (await handle.readFile('utf8')) === 'plain' })
    } finally {
      await handle.close()
    }
    cases.push({ name: 'the file outside is untouched', passed: (await readFile(secret, 'utf8')) === outside })
    return { cases, evidence: `${hostile.length} hostile and ${legal.length} legal names, links, a device` }
  } finally {
    await rm(base, { recursive: true, force: true })
  }
}

async function isRefused(attempt: () => Promise<unknown>): Promise<boolean> {
  try {
    const opened = await attempt()
    if (typeof opened === 'object' && opened !== null && 'close' in opened && typeof opened.close === 'function')
      await opened.close()
    return false
  } catch (error) {
    return error instanceof Refusal && (error.code === 'forbidden' || error.code === 'invalid_request')
  }
}
