import { createWriteStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import { openPromise } from 'yauzl'
import { ZipFile } from 'yazl'
import { ArchiveWriter } from '../../../plugins/backups/archive.ts'

/** Everything in an archive, by name. */
export async function unpack(file: string): Promise<ReadonlyMap<string, Buffer>> {
  const zip = await openPromise(file, { lazyEntries: true })
  const found = new Map<string, Buffer>()
  for await (const entry of zip.eachEntry()) {
    const chunks: Buffer[] = []
    for await (const chunk of await zip.openReadStreamPromise(entry)) chunks.push(chunk as Buffer)
    found.set(entry.fileName, Buffer.concat(chunks))
  }
  return found
}

/** A sound archive of these texts. */
export async function writeArchive(
  file: string,
  key: Uint8Array,
  texts: Readonly<Record<string, string>>,
): Promise<void> {
  const archive = await ArchiveWriter.create(file)
  for (const [name, text] of Object.entries(texts)) archive.addText(text, name)
  await archive.end(
    { format: 'svc-backup-1', created_at: '2026-01-01T00:00:00.000Z', svc_version: '0.1.0', components: ['data'] },
    key,
    { database: 'svc.db', skipped: [] },
  )
}

/** Whatever a zip file may hold. */
export async function writeZip(file: string, fill: (zip: ZipFile) => void): Promise<void> {
  const zip = new ZipFile()
  const written = pipeline(zip.outputStream, createWriteStream(file))
  fill(zip)
  zip.end()
  await written
}
