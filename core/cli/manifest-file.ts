import { readFile } from 'node:fs/promises'
import { exits, Failure } from './failure.ts'

/** The whole text of a file, exactly as it is. Throws `Failure` that names the file. */
export async function readExactly(file: string): Promise<string> {
  let bytes: Buffer
  try {
    bytes = await readFile(file)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : ''
    throw new Failure(
      code === 'ENOENT' ? exits.notFound : exits.failed,
      `${file} cannot be read (${code})`,
      undefined,
      { cause: error },
    )
  }
  const text = bytes.toString('utf8')
  // A byte that is no UTF-8 would be signed as another one.
  if (!Buffer.from(text, 'utf8').equals(bytes)) throw new Failure(exits.failed, `${file} is not UTF-8 text`)
  return text
}
