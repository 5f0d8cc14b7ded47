/**
 * PDF files of a few hundred bytes, for the tests: lines of text at places, in Helvetica or in a Chinese font that the file
 * names and does not bring.
 */

/** A line: `{ text, size, x, y }`; text that is not Latin-1 is set in the Chinese font. */
const operators = ({ text, size = 11, x = 72, y }) =>
  isLatin(text)
    ? `BT /F1 ${size} Tf ${x} ${y} Td (${text.replace(/[\\()]/g, '\\$&')}) Tj ET`
    : `BT /F2 ${size} Tf ${x} ${y} Td <${[...text].map((char) => hex(char.charCodeAt(0))).join('')}> Tj ET`;

// biome-ignore lint/suspicious/noControlCharactersInRegex: all of ASCII is meant.
const isLatin = (text) => /^[\x00-\x7f]*$/.test(text);
const hex = (code) => code.toString(16).padStart(4, '0');

/** Lines below each other from the top of a page; an empty one is a gap. */
export function column(texts, { size = 11, top = 760, gap = size * 1.3 } = {}) {
  return texts.flatMap((text, index) => (text === '' ? [] : [{ text, size, y: top - index * gap }]));
}

/** A file of pages of lines; `encrypted` is one that wants a password which nobody has. */
export function makePdf(pages, { title = '', encrypted = false } = {}) {
  const objects = [
    '<< /Type /Catalog /Pages 2 0 R >>',
    `<< /Type /Pages /Count ${pages.length} /Kids [${pages.map((_, index) => `${8 + 2 * index} 0 R`).join(' ')}] >>`,
    '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>',
    '<< /Type /Font /Subtype /Type0 /BaseFont /STSong-Light /Encoding /UniGB-UCS2-H /DescendantFonts [5 0 R] >>',
    '<< /Type /Font /Subtype /CIDFontType0 /BaseFont /STSong-Light /FontDescriptor 6 0 R /CIDSystemInfo << /Registry (Adobe) /Ordering (GB1) /Supplement 4 >> >>',
    '<< /Type /FontDescriptor /FontName /STSong-Light /Flags 6 /FontBBox [-25 -254 1000 880] /ItalicAngle 0 /Ascent 880 /Descent -120 /CapHeight 880 /StemV 93 >>',
    encrypted
      ? `<< /Filter /Standard /V 1 /R 2 /P -4 /O <${'4f'.repeat(32)}> /U <${'55'.repeat(32)}> >>`
      : `<< /Title (${title}) >>`,
    ...pages.flatMap((lines, index) => {
      const stream = lines.map(operators).join('\n');
      return [
        `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F1 3 0 R /F2 4 0 R >> >> /Contents ${9 + 2 * index} 0 R >>`,
        `<< /Length ${stream.length} >>\nstream\n${stream}\nendstream`,
      ];
    }),
  ];
  let file = '%PDF-1.4\n';
  const offsets = objects.map((object, index) => {
    const offset = file.length;
    file += `${index + 1} 0 obj\n${object}\nendobj\n`;
    return offset;
  });
  const at = file.length;
  const entries = offsets.map((offset) => `${String(offset).padStart(10, '0')} 00000 n \n`).join('');
  const id = 'ab'.repeat(16);
  const last = encrypted ? `/Encrypt 7 0 R /ID [<${id}> <${id}>]` : '/Info 7 0 R';
  file += `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${entries}`;
  file += `trailer\n<< /Size ${objects.length + 1} /Root 1 0 R ${last} >>\nstartxref\n${at}\n%%EOF\n`;
  return new TextEncoder().encode(file);
}
