/** A PDF with a page for each text, by ISO 32000-1, 7.5: the lines of a page are separated by line feeds. */
export function pdfOf(pages: readonly string[]): Uint8Array {
  const fonts = '/Resources << /Font << /F1 3 0 R >> >>'
  const objects = [
    '<< /Type /Catalog /Pages 2 0 R >>',
    `<< /Type /Pages /Kids [${pages.map((_, at) => `${4 + at * 2} 0 R`).join(' ')}] /Count ${pages.length} >>`,
    '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>',
    ...pages.flatMap((text, at) => {
      const lines = text.split('\n').map((line) => `(${line}) Tj T*`)
      const content = `BT /F1 12 Tf 20 150 Td 14 TL ${lines.join(' ')} ET`
      return [
        `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 200] ${fonts} /Contents ${5 + at * 2} 0 R >>`,
        `<< /Length ${content.length} >>\nstream\n${content}\nendstream`,
      ]
    }),
    '<< /Title (Tides) /CreationDate (D:20260131120000Z) >>',
  ]
  const head = '%PDF-1.4\n'
  const bodies = objects.map((object, at) => `${at + 1} 0 obj\n${object}\nendobj\n`)
  const offsets = bodies.map((_, at) => head.length + bodies.slice(0, at).join('').length)
  const rows = offsets.map((offset) => `${String(offset).padStart(10, '0')} 00000 n \n`)
  const table = `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${rows.join('')}`
  const trailer = `trailer << /Size ${objects.length + 1} /Root 1 0 R /Info ${objects.length} 0 R >>`
  const begin = head.length + bodies.join('').length
  return new TextEncoder().encode(`${head}${bodies.join('')}${table}${trailer}\nstartxref\n${begin}\n%%EOF\n`)
}
