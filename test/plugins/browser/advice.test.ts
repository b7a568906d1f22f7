import { expect, it } from 'vitest'
import { findChromium, requireIsolation } from '../../../plugins/browser/chromium.ts'

const machine = (level: 'bubblewrap' | 'none', ...programs: string[]) => ({
  has: (name: string) => programs.includes(name),
  find: () => Promise.reject(new Error('nothing is there')),
  isolation: async () => ({ level, network: 'proxy' }) as never,
})

it.each([
  ['Debian', 'apt-get', 'apt-get install chromium-headless-shell', 'apt-get install bubblewrap perl'],
  ['Fedora', 'dnf', 'dnf install chromium', 'dnf install bubblewrap perl'],
  ['Alpine', 'apk', 'apk add chromium', 'apk add bubblewrap perl'],
  ['Arch', 'pacman', 'pacman -S chromium', 'pacman -S bubblewrap perl'],
])('names the command of %s that installs what browsers need', async (_, manager, chromium, sandbox) => {
  const spawn = machine('none', manager)
  await expect(findChromium(spawn, undefined)).rejects.toThrow(`install one with \`${chromium}\``)
  await expect(requireIsolation(spawn)).rejects.toThrow(`install both with \`${sandbox}\``)
})

it('says what to install where no known program does it, and is content where a sandbox is', async () => {
  await expect(findChromium(machine('none'), undefined)).rejects.toThrow(
    'No Chromium was found: install one, or name it',
  )
  await expect(requireIsolation(machine('none'), 'linux')).rejects.toThrow('svc decides on: install both')
  await expect(requireIsolation(machine('none', 'brew'), 'darwin')).rejects.toThrow('bubblewrap is for Linux only')
  await expect(requireIsolation(machine('bubblewrap'))).resolves.toBeUndefined()
})
