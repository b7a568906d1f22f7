import { readFile } from 'node:fs/promises'
import { SourceMap } from 'node:module'
import type { SourceMapPayload } from 'node:module'
import { readOwnJson } from '../schema/nesting.ts'
import { transform } from './transpiler.ts'

/** Where in the source of the plugin in `folder` an error was thrown, as `file:line:column`; its own files first. */
export async function sourcePlace(error: unknown, folder: string): Promise<string | undefined> {
  if (!(error instanceof Error)) return undefined
  const places = (error.stack ?? '').split('\n').flatMap((line) => {
    const [, file, row, column] = /(?:file:\/\/)?(\/[^()?]+)(?:\?[^():]*)?:(\d+):(\d+)/.exec(line) ?? []
    const isInside = file === folder || file?.startsWith(`${folder}/`)
    return file !== undefined && isInside ? [{ file, line: Number(row), column: Number(column) }] : []
  })
  const place = places.find(({ file }) => !file.slice(folder.length).includes('/node_modules/')) ?? places[0]
  if (!place) return undefined
  return `${place.file}:${place.line}:${await columnInSource(place)}`
}

interface Place {
  readonly file: string
  readonly line: number
  readonly column: number
}

/** What runs has the lines of the source, but TypeScript was taken out of them. */
async function columnInSource({ file, line, column }: Place): Promise<number> {
  if (!/\.[cm]?tsx?$/.test(file)) return column
  try {
    const { code } = transform({
      source: await readFile(file, 'utf8'),
      filename: file,
      ts: true,
      async: true,
      babel: { sourceFileName: file, sourceMaps: 'inline' },
    })
    const encoded = /sourceMappingURL=data:application\/json[^,]*;base64,([\w+/=]+)\s*$/.exec(code)?.[1]
    if (encoded === undefined) return column
    const map = new SourceMap(readOwnJson(Buffer.from(encoded, 'base64').toString('utf8')) as SourceMapPayload)
    const found = map.findEntry(line - 1, column - 1)
    return 'originalColumn' in found && found.originalLine === line - 1 ? found.originalColumn + 1 : column
  } catch {
    return column /* the file has changed since: the line says enough */
  }
}
