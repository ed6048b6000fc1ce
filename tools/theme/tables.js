// A narrow window shows each row of a table of text as a list: its cells need their column's name.
for (const table of document.querySelectorAll(".md-typeset table:not([class])")) {
  const columns = [...table.querySelectorAll("thead th")];
  if (columns.some((column) => column.style.textAlign === "right")) continue;
  table.dataset.rows = "text";
  for (const cell of table.querySelectorAll("tbody td")) {
    cell.dataset.column = columns[cell.cellIndex].textContent.replace("¶", "");
  }
}
