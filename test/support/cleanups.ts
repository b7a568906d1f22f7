/**
 * Work after each test and after each file. A support module adds to it once: a hook at its top level would be lost, for
 * files that share a process evaluate the module once, and hooks belong to the file that evaluated it.
 */
export const cleanups: { readonly eachTest: (() => Promise<void>)[]; readonly eachFile: (() => Promise<void>)[] } = {
  eachTest: [],
  eachFile: [],
}
