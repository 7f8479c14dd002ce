for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => head.firstElementChild.addEventListener("click", () => {
    const way = head.getAttribute("aria-sort") === "descending" ? "ascending" : "descending";
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", way);
    const key = (row) => row.cells[column].dataset.value;
    const compare = (a, b) => {
      const [x, y] = [key(a), key(b)];
      if (x === "" || y === "") return (x === "") - (y === "");
      const order = isNaN(x) || isNaN(y) ? x.localeCompare(y) : x - y;
      return way === "ascending" ? order : -order;
    };
    const body = table.tBodies[0];
    body.append(...[...body.rows].sort(compare));
  }));
}
