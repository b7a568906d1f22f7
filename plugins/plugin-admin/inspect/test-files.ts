import { readdirSync } from 'node:fs'

/** The test files in the folder of a plugin, relative to it. */
export function testFiles(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.test\.m?[jt]s$/.test(file) && !file.includes('node_modules'))
    .toSorted()
}
