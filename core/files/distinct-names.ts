import { Refusal } from '../errors/error.ts'

/**
 * Throws `invalid_request` when a name is there twice, as file and folder, or when two files or folders differ by case
 * only: one would replace the other on a file system that does not tell them apart. `where` begins the message, such as
 * `The archive`.
 */
export function checkDistinctNames(names: Iterable<string>, where: string): void {
  const known = new Map<string, { readonly name: string; readonly isFile: boolean }>()
  for (const name of names)
    for (let end = name.indexOf('/'); ; end = name.indexOf('/', end + 1)) {
      const isFile = end < 0
      const part = isFile ? name : name.slice(0, end)
      // Upper case first: "ß" and "SS" are one name where case does not count, and so are the three letters sigma.
      const folded = part.normalize('NFC').toUpperCase().toLowerCase()
      const other = known.get(folded)
      if (other !== undefined && other.name !== part)
        throw new Refusal('invalid_request', `${where} has "${other.name}" and "${part}", which differ by case only`)
      if (other?.isFile === true || (other && isFile))
        throw new Refusal('invalid_request', `${where} has the file "${part}" twice, or as file and folder`)
      known.set(folded, { name: part, isFile })
      if (isFile) break
    }
}
