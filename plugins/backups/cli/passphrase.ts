import { commandLine, exits, Failure, readSecret } from 'svc/cli'

/** Asks for a passphrase, or reads the first line of standard input. Throws a `Failure` for one that is too short. */
export async function readPassphrase(command: string, minChars: number): Promise<string> {
  const passphrase = await readSecret('Passphrase: ')
  if (passphrase.length >= minChars) return passphrase
  throw new Failure(
    exits.usage,
    passphrase === '' ? 'no passphrase was given' : `the passphrase must have at least ${minChars} characters`,
    process.stdin.isTTY === true
      ? 'nothing was changed; enter the passphrase when you are asked'
      : `without a terminal it is the first line of standard input: ${commandLine(`${command} < passphrase.txt`)}`,
  )
}
