import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { commandName } from '../../../core/process/command-name.ts'

let root: string
let entry: string
beforeAll(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), 'svc-name-')))
  entry = join(root, 'checkout/dist/svc.js')
  await mkdir(join(root, 'checkout/dist'), { recursive: true })
  await mkdir(join(root, 'checkout/node_modules/.bin'), { recursive: true })
  await mkdir(join(root, 'bin'))
  await writeFile(entry, '')
  await symlink(entry, join(root, 'bin/svc'))
  await symlink(entry, join(root, 'checkout/node_modules/.bin/svc'))
})
afterAll(async () => {
  await rm(root, { recursive: true })
})

it('is svc where the PATH leads to this program, by whatever way it was started', () => {
  expect(commandName(entry, `/none:${join(root, 'bin')}`, '/')).toBe('svc')
  expect(commandName(join(root, 'bin/svc'), join(root, 'bin'), join(root, 'checkout'))).toBe('svc')
})
it('is npx svc in the checkout, where npm alone has it in the PATH', () => {
  const path = join(root, 'checkout/node_modules/.bin')
  expect(commandName(entry, path, join(root, 'checkout'))).toBe('npx svc')
  expect(commandName(entry, '', join(root, 'checkout/dist'))).toBe('npx svc')
})
it('is the whole way elsewhere', () => {
  expect(commandName(entry, '/none', root)).toBe(`${process.execPath} ${entry}`)
})
