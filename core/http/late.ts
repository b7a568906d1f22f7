import type * as PageDocument from './page-document.ts'

/** Evaluated with the first page and not with every start. */
export const documentOf = async (
  ...given: Parameters<typeof PageDocument.documentOf>
): Promise<ReturnType<typeof PageDocument.documentOf>> => (await import('./page-document.ts')).documentOf(...given)
export const putAround = async (
  ...given: Parameters<typeof PageDocument.putAround>
): Promise<ReturnType<typeof PageDocument.putAround>> => (await import('./page-document.ts')).putAround(...given)
